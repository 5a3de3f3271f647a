"""The options of a write, declared once: names, values, defaults, bounds, help and their page in the docs.

Knows what may be asked for, not what becomes of it. Called by the service, Spark's side and the command line.
"""
