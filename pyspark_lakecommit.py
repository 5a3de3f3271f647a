"""Lets Spark find `format("lakecommit")` by itself.

Spark imports every module whose name begins with `pyspark_` and registers its `DefaultSource`. One that cannot be
imported takes all the others down with it, so this one warns instead and has no `DefaultSource` then.
"""

import warnings

try:
    from lakecommit.spark_ext.source import LakecommitDataSource
except Exception as error:
    # Without pyspark nobody is looking for a data source.
    if (getattr(error, "name", None) or "").partition(".")[0] != "pyspark":
        warnings.warn(f'format("lakecommit") is not available: {error}', RuntimeWarning, stacklevel=1)
else:
    DefaultSource = LakecommitDataSource
