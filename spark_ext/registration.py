"""`lakecommit.register(spark)`: the data source, the committer in the driver, and the query listener."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from lakecommit.errors import InvalidInput
from lakecommit.listening.api import CommitListener, check_listeners
from lakecommit.model import QueryId
from lakecommit.options.process import process_options
from lakecommit.service.dispatch import Committers
from lakecommit.service.server import ADDRESS_VARIABLE, SESSION_VARIABLE, CommitterService
from lakecommit.spark_ext.announcement import announce
from lakecommit.spark_ext.classic_calls import wrap_classic_writers
from lakecommit.spark_ext.metrics import SparkMetrics
from lakecommit.spark_ext.restarts import keep_listening, log_as_committed, restart_of
from lakecommit.spark_ext.session import SparkSessions, settings_of
from lakecommit.spark_ext.source import LakecommitDataSource
from lakecommit.spark_ext.task import local_dir
from lakecommit.spark_ext.version import check_version
from lakecommit.spark_ext.workers import check_workers
from lakecommit.spark_ext.writers import everywhere

# How many rows Spark hands to Python at once. To end a batch by its bytes, Spark adds up all columns after every row,
# which takes longer than everything else in a large append; the largest value ends that. Then rows alone bound a batch:
# 4,000 of 60 KB each fit beside one another into the smallest heap that Spark starts with, with two tasks in it.
TRANSFER = {
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4000",
}
_log = logging.getLogger("lakecommit.spark_ext")
_lock = threading.Lock()


@dataclass(frozen=True)
class _Driver:
    """What a Spark context has of lakecommit."""

    service: CommitterService
    sessions: SparkSessions


# By application id: a process has one context at a time.
_drivers: dict[str, _Driver] = {}
# By name, of all calls of `register`: every context of the process has them.
_listeners: dict[str, CommitListener] = {}


def register(spark: SparkSession, listeners: Sequence[CommitListener] = ()) -> None:
    """Makes `format("lakecommit")` known to `spark` and starts the committer of its driver. Again is harmless.

    `listeners` are told of snapshots of all streams of the process, beside those of earlier calls, also of calls for
    a context that was stopped since. One with the name of an earlier one takes its place.

    Raises `InvalidInput`, and changes nothing, if workers could not run lakecommit, or a listener or a setting of
    the process cannot be meant.

    In a Spark Connect session there is no driver process to put a committer into: writes commit inline, and nobody
    could call a listener.
    """
    check_version(spark.version)
    added = check_listeners(listeners)
    context = getattr(spark, "_sc", None)
    if not isinstance(context, SparkContext):
        if listeners:
            raise InvalidInput(
                "listeners are called in the driver's process, and a Spark Connect session runs in another one; leave "
                "them out here, and register them in the driver's process"
            )
        # Needs packages that only those have who have such a session.
        from lakecommit.spark_ext.connect_calls import wrap_connect_writers  # noqa: PLC0415

        spark.dataSource.register(LakecommitDataSource)
        _bound_transfer(spark)
        wrap_connect_writers()
        _log.info("no driver process here (Spark Connect): format('lakecommit') commits inline")
        return
    with _lock:
        driver = _driver_of(context, spark)
        session_id = driver.sessions.id_of(spark)
        if session_id is None:
            session_id = str(uuid.uuid4())
            context.environment[ADDRESS_VARIABLE] = driver.service.directory
            context.environment[SESSION_VARIABLE] = session_id
            announce(spark, LakecommitDataSource)
            driver.sessions.add(session_id, spark)
            spark.streams.addListener(_QueryListener(driver, session_id))
        _bound_transfer(spark)
        wrap_classic_writers(_newest_version)
        _listeners.update(added)
        driver.service.listen(listeners)


def drain(timeout: float) -> None:
    """Waits until nothing that streams of this process have sealed is pending."""
    for driver in list(_drivers.values()):
        driver.service.drain(timeout)


def metrics() -> dict[str, dict[str, dict[str, object]]]:
    """What the committers of this process have done, by table and query."""
    return {table: queries for driver in list(_drivers.values()) for table, queries in driver.service.metrics().items()}


def _driver_of(context: SparkContext, spark: SparkSession) -> _Driver:
    """The driver's part of a context. `spark` says what holds for the process where it is the first that asks."""
    application = context.applicationId
    if application not in _drivers:
        process = process_options(settings_of(spark), os.environ)
        check_workers(context)
        _close_services()
        sessions = SparkSessions()
        committers = Committers(process=process, local_dir=local_dir(), counted=SparkMetrics(context).show)
        service = CommitterService(committers, sessions)
        service.listen(tuple(_listeners.values()))
        _drivers[application] = _Driver(service, sessions)
    return _drivers[application]


def _newest_version(spark: SparkSession, options: Mapping[str, str]) -> int | None:
    driver = _drivers[spark.sparkContext.applicationId]
    return driver.service.newest_version(everywhere(options), settings_of(spark))


class _QueryListener(StreamingQueryListener):
    """Tells the committer when runs of queries begin and end. Spark calls it before the first epoch is planned."""

    def __init__(self, driver: _Driver, session_id: str) -> None:
        self._driver = driver
        self._session_id = session_id

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 (Spark's name)
        query, sessions, service = QueryId(str(event.id)), self._driver.sessions, self._driver.service
        sessions.started(self._session_id, query, str(event.runId), event.name)
        service.begin_run(query)
        # On this thread, which stands for the query's own: a checkpoint that does not answer holds up no other query.
        spark = sessions.session(self._session_id)
        try:
            restart = restart_of(spark, query, sessions.defaults(self._session_id))
            if restart is not None and service.resume(restart) and restart.repeated is not None:
                log_as_committed(spark, query, restart.repeated)
        finally:
            keep_listening(spark)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 (Spark's name)
        pass

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 (Spark's name)
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 (Spark's name)
        query = QueryId(str(event.id))
        if self._driver.sessions.ended(query, str(event.runId)):
            self._driver.service.end_run(query)


def _bound_transfer(spark: SparkSession) -> None:
    """Sets `TRANSFER`, unless the session says anything about it itself."""
    if any(spark.conf.get(key, None) is not None for key in TRANSFER):
        return
    for key, value in TRANSFER.items():
        spark.conf.set(key, value)
    _log.info(
        "rows go to Python in batches of 4,000, whatever their size; docs/large-appends.md says when to change that"
    )


def _close_services() -> None:
    """Ends the services of contexts that this process had before: it has one at a time."""
    while _drivers:
        _drivers.popitem()[1].service.close()


atexit.register(_close_services)
