"""What Spark 4.2.0 does with the log of its streaming file sink, `_spark_metadata`: its reader and its sink as a model.

A log is a mapping from the names of its objects, relative to the log directory, to their bodies. Nothing here does I/O.
"""
