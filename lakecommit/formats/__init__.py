"""The seam to a table format: how a table is opened, planned for, changed and asked what it holds.

`base` has the verbs and values, `registry` the formats by name. A format knows its own log and no epoch's progress.
Called by every stage through the verbs; a format's own modules are imported by the registry alone.
"""
