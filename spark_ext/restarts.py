"""What a query's checkpoint says when a run begins, and the entry that a dead driver could not add to it any more.

Spark logs an epoch's offsets before it runs the epoch and logs it as committed afterwards. A driver that dies in
between leaves an epoch that Spark runs again, input and all, even if the epoch is sealed and nothing of it is
needed. Then the missing entry is added, exactly as Spark would have done: a run that begins finds it and goes on.

That is done only if the entry says nothing but that the epoch is done. For a query with a watermark or with state it
says more, which only Spark can know: then the epoch is run again, and writes nothing.

The classes behind it are internal to Spark. Whatever fails here costs reading an epoch's input again, and no data.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from lakecommit.model import Epoch, QueryId
from lakecommit.service.dispatch import Restart
from lakecommit.spark_ext.offsets import entries, epoch_offsets, field_of
from lakecommit.spark_ext.source import LakecommitDataSource
from lakecommit.spark_ext.writers import everywhere

_EXECUTION = "MicroBatchExecution"
_SINK = "PythonTable"
_WATERMARK = "EventTimeWatermark"
# What Spark logs of an epoch without state and watermark.
_DONE = '{"nextBatchWatermarkMs":0}'
_SINK_HISTORY = "spark.sql.streaming.queryEvolution.enableSinkEvolution"
_log = logging.getLogger("lakecommit.spark_ext")


def restart_of(spark: SparkSession, query: QueryId, defaults: Mapping[str, str]) -> Restart | None:
    """What is known of a run that is about to begin; None where the query is new, or writes with another sink."""
    try:
        execution = _execution(spark, query)
        planned = execution.offsetLog().getLatestBatchId() if execution is not None else None
        if planned is None or planned.isEmpty():
            return None
        options, epoch = everywhere(entries(field_of(execution, "extraOptions"))), Epoch(planned.get())
        restart = Restart(query, options, defaults, name=execution.name())
        if not _may_be_left_out(spark, execution, epoch):
            return restart
        fingerprint = epoch_offsets(spark, query, epoch, with_latest=False).fingerprint
        return replace(restart, repeated=epoch, fingerprint=fingerprint)
    except Exception as error:
        _log.info("the checkpoint of query %s cannot be read: %s", query, type(error).__name__)
        return None


def log_as_committed(spark: SparkSession, query: QueryId, epoch: Epoch) -> None:
    """Adds the epoch to Spark's commit log. Precondition: it is sealed, and `restart_of` has named it."""
    try:
        execution = _execution(spark, query)
        if execution is not None and execution.commitLog().add(int(epoch), _done_entry(spark)):
            _log.info("epoch %d of query %s is sealed, so that Spark does not run it again", epoch, query)
    except Exception as error:
        _log.info("epoch %d of query %s is run again: %s", epoch, query, type(error).__name__)


def keep_listening(spark: SparkSession) -> None:
    """Spark takes a listener away for good whose thread was interrupted, as it is where somebody stops a query that is
    still being started. Called by that listener, before it returns: the query ends without it, too."""
    jvm = spark._jvm
    assert jvm is not None
    jvm.java.lang.Thread.interrupted()


def _execution(spark: SparkSession, query: QueryId) -> Any:
    """The query as Spark runs it; None where it is none of ours."""
    running = spark.streams.get(query)
    execution = None if running is None else running._jsq.streamingQuery()
    if execution is None or execution.getClass().getSimpleName() != _EXECUTION:
        return None
    sink = execution.sink()
    is_python = sink.getClass().getSimpleName() == _SINK
    return execution if is_python and sink.name().lower() == LakecommitDataSource.name() else None


def _may_be_left_out(spark: SparkSession, execution: Any, epoch: Epoch) -> bool:
    """Whether the epoch is not logged as committed, and the entry would say nothing but that it is."""
    log = execution.commitLog()
    if not log.get(int(epoch)).isEmpty() or _WATERMARK in execution.analyzedPlan().toString():
        return False
    if log.defaultVersion() != 1 or spark.conf.get(_SINK_HISTORY, "false") != "false":
        return False
    if epoch > 0:
        before = log.get(int(epoch) - 1)
        if before.isEmpty() or before.get().json() != _done_entry(spark).json():
            return False
    return not _has_state(spark, execution.resolvedCheckpointRoot())


def _has_state(spark: SparkSession, checkpoint: str) -> bool:
    """Whether operators of the query have ever kept any: the epoch has run, or nobody could have sealed it. (That the
    query has got such operators since is for Spark to refuse.)"""
    jvm, settings = spark._jvm, spark._jsparkSession.sessionState().newHadoopConf()
    assert jvm is not None
    path = jvm.org.apache.hadoop.fs.Path(f"{checkpoint}/state")
    return bool(path.getFileSystem(settings).exists(path))


def _done_entry(spark: SparkSession) -> Any:
    jvm = spark._jvm
    assert jvm is not None
    return jvm.org.apache.spark.sql.execution.streaming.checkpointing.CommitMetadata.apply(_DONE)
