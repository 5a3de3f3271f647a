"""Plain Parquet directories with the log of Spark's own streaming file sink, which Spark's readers go by.

Owns every name and word in `_spark_metadata`. Does not own what is decided about a table: that asks by the verbs of
`formats/base.py`. Called through the registry alone.
"""
