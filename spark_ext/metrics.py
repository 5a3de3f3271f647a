"""The committers' figures among Spark's own metrics, from where its sinks (JMX, Prometheus, CSV…) take them.

They are accumulators of the driver, which Spark shows as gauges of the source `AccumulatorSource`. Only what has been
committed moves them, never a task.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark import SparkContext

from lakecommit.observing.metrics import QueryMetrics

PREFIX = "lakecommit."
_log = logging.getLogger("lakecommit.spark_ext")


class SparkMetrics:
    def __init__(self, context: SparkContext) -> None:
        self._context = context
        # Calling Spark takes milliseconds, and nobody waits for it.
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lakecommit-metrics")
        self._gauges: dict[str, Any] = {}
        self._shown: dict[str, int] = {}

    def show(self, metrics: QueryMetrics) -> None:
        """Never waits, and never fails: what goes wrong costs a figure and no data."""
        values = {
            "snapshots": metrics.snapshots,
            "epochs": metrics.epochs,
            "files": metrics.files,
            "rows": metrics.rows,
            "bytes": metrics.size_bytes,
            "requests": metrics.requests,
            "attempts": metrics.attempts,
            "waitedMs": metrics.waited_ms,
            "inBacklog": int(metrics.in_backlog),
            "pendingEpochs": metrics.pending_epochs,
            "pendingFiles": metrics.pending_files,
            "pendingBytes": metrics.pending_size_bytes,
        }
        try:
            self._executor.submit(self._set, values)
        except RuntimeError:
            _log.debug("the process ends: Spark's metrics are not updated any more")

    def _set(self, values: dict[str, int]) -> None:
        try:
            self._gauges = self._gauges or _register(self._context, list(values))
            for name, value in values.items():
                change = value - self._shown.get(name, 0)
                if change:
                    self._gauges[name].add(change)
                    self._shown[name] = value
        except Exception as error:
            _log.info("Spark's metrics cannot be updated: %s", type(error).__name__)


def _register(context: SparkContext, names: list[str]) -> dict[str, Any]:
    jvm, spark = context._jvm, context._jsc.sc()
    assert jvm is not None
    gauges = {name: spark.longAccumulator(PREFIX + name) for name in names}
    by_name = jvm.java.util.HashMap()
    for name, gauge in gauges.items():
        by_name.put(PREFIX + name, gauge)
    # A singleton of Scala's.
    source = getattr(getattr(jvm.org.apache.spark.metrics.source, "LongAccumulatorSource$"), "MODULE$")
    source.register(spark, jvm.PythonUtils.toScalaMap(by_name))
    return gauges
