"""The options of writes and of reads, declared once: names, values, defaults, bounds, help and their page in the docs.

Knows what may be asked for, not what becomes of it. Called by the service, readers, leases, Spark's
side and the command line.
"""
