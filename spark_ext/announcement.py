"""Makes the data source known to a Spark session, and no noise.

As `spark.dataSource.register` does, but for two things. Spark finds lakecommit by itself, too, and would warn on every
call that the one is replaced by the other: it is the same, and only this one knows the committer. And pyspark would
have workers send accumulators, of which lakecommit has none, through a socket that ends with a stack trace in the
driver when a query is stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pyspark import SparkContext
from pyspark.core.rdd import _prepare_for_python_RDD
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

_LOGGER = "org.apache.spark.sql.execution.datasources.DataSourceManager"
_SOURCE = "org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource"


def announce(spark: SparkSession, source: type[DataSource]) -> None:
    """Workers of this source get the environment that the context has now."""
    context, jvm = spark.sparkContext, spark._jvm
    assert jvm is not None
    command, broadcasts, environment, includes = _prepare_for_python_RDD(context, source)
    function = jvm.SimplePythonFunction(
        bytearray(command), environment, includes, context.pythonExec, context.pythonVer, broadcasts, None
    )
    with _only_errors(context, _LOGGER):
        spark._jsparkSession.dataSource().registerPython(source.name(), getattr(jvm, _SOURCE)(function))


@contextmanager
def _only_errors(context: SparkContext, name: str) -> Iterator[None]:
    """A logger of Spark's says nothing but errors meanwhile. Where Spark logs in another way, it says what it says."""
    logger: Any = None
    before: Any = None
    with suppress(Exception):
        log4j = context._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
        logger = log4j.LogManager.getLogger(name)
        before = logger.getLevel()
        logger.setLevel(log4j.Level.ERROR)
    try:
        yield
    finally:
        with suppress(Exception):
            logger.setLevel(before)
