"""lakecommit: a lakehouse table writer for Spark with coordinator-side commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__version__ = "0.1.0"
__all__ = ["__version__", "register"]


def register(spark: SparkSession) -> None:
    """Makes `format("lakecommit")` known to `spark` and starts its committer in this process. Again is harmless."""
    from lakecommit.spark_ext.registration import register as register_with  # noqa: PLC0415 (Spark is an extra)

    register_with(spark)
