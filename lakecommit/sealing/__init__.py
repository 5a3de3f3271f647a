"""Stage 2: the durable decision which attempts won an epoch's tasks, once and in order.

Judges the epoch and its reports and puts the seal. Does not commit. Called by the committer of a table.
"""
