"""Makes the data source known to a Spark session, without a warning or a stack trace in Spark's log.

As `spark.dataSource.register` does, but for two things. Spark finds lakecommit by itself, too, and would warn that the
one is replaced by the other, here and whenever a query starts: it is the same, and only this one knows the committer.
And pyspark would have workers send accumulators, of which lakecommit has none, through a socket that ends with a stack
trace in the driver when a query is stopped.
"""

from __future__ import annotations

import logging
from typing import Any

from pyspark.core.rdd import _prepare_for_python_RDD
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

_LOGGER = "org.apache.spark.sql.execution.datasources.DataSourceManager"
_SOURCE = "org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource"
_log = logging.getLogger("lakecommit.spark_ext")


def announce(spark: SparkSession, source: type[DataSource]) -> None:
    """Workers of this source get the environment that the context has now."""
    context, jvm = spark.sparkContext, spark._jvm
    assert jvm is not None
    command, broadcasts, environment, includes = _prepare_for_python_RDD(context, source)
    function = jvm.SimplePythonFunction(
        bytearray(command), environment, includes, context.pythonExec, context.pythonVer, broadcasts, None
    )
    _leave_out(jvm, f"The data source {source.name()} replaced a statically registered data source.")
    spark._jsparkSession.dataSource().registerPython(source.name(), getattr(jvm, _SOURCE)(function))


def _leave_out(jvm: Any, message: str) -> None:
    """Spark's log says everything but this. Where Spark logs in another way than by default, it says this, too."""
    try:
        log4j = jvm.org.apache.logging.log4j
        context = log4j.LogManager.getContext(False)
        settings = context.getConfiguration()
        logger = settings.getLoggerConfig(_LOGGER)
        if logger.getName() != _LOGGER:
            # Without a level of its own, so that Spark's holds here, too.
            logger = log4j.core.config.LoggerConfig(_LOGGER, None, True)
            settings.addLogger(_LOGGER, logger)
        if not logger.hasFilter():
            result = getattr(log4j.core, "Filter$Result")
            exactly = jvm.java.util.regex.Pattern.quote(message)
            logger.addFilter(
                log4j.core.filter.RegexFilter.createFilter(exactly, None, False, result.DENY, result.NEUTRAL)
            )
            context.updateLoggers()
    except Exception as error:
        _log.debug("Spark's warning about a replaced data source stays in its log: %s", type(error).__name__)
