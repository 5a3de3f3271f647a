"""What the committer asks of the driver's Spark sessions, through py4j."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.sql import SparkSession

from lakecommit.formats.registry import format_named
from lakecommit.formats.settings import FormatSettings
from lakecommit.model import Epoch, QueryId
from lakecommit.options.parsing import parse_options
from lakecommit.options.session import session_options
from lakecommit.progress.backlog import NOT_KNOWN, EpochOffsets
from lakecommit.service.dispatch import Facts
from lakecommit.service.wire import Request, Verb
from lakecommit.spark_ext.offsets import entries, epoch_offsets
from lakecommit.spark_ext.plans import batch_reads, stream_reads
from lakecommit.spark_ext.tables_by_name import location_of
from lakecommit.state.codec import decode_report
from lakecommit.storage import hadoop


class SparkSessions:
    """The registered sessions of one context, and the runs of queries in them, which query listeners report."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[str, SparkSession] = {}
        self._defaults: dict[str, Mapping[str, str]] = {}
        self._runs: dict[QueryId, str] = {}
        self._names: dict[QueryId, str] = {}
        self._latest_known: dict[QueryId, str] = {}
        self._reads: dict[QueryId, Sequence[str] | None] = {}
        # py4j keeps a connection for each thread that calls: one for all requests, not one for each.
        self._jvm = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lakecommit-py4j")

    def add(self, session_id: str, spark: SparkSession) -> None:
        with self._lock:
            self._sessions[session_id] = spark
            active = spark.streams.active
            self._runs.update({QueryId(str(query.id)): str(query.runId) for query in active})
            self._names.update({QueryId(str(query.id)): query.name for query in active if query.name})

    def id_of(self, spark: SparkSession) -> str | None:
        """The id under which a session was added; several Python objects may stand for one session."""
        with self._lock:
            known = self._sessions.items()
            return next((key for key, each in known if each._jsparkSession.equals(spark._jsparkSession)), None)

    def started(self, session_id: str, query: QueryId, run: str, name: str | None) -> None:
        """A run begins, with the settings that its session has at this moment: as in Spark, they hold until it ends."""
        self._read_defaults(session_id)
        with self._lock:
            self._runs[query] = run
            self._names.pop(query, None)
            if name:
                self._names[query] = name
            self._reads.pop(query, None)

    def ended(self, query: QueryId, run: str) -> bool:
        """False where a new run of the same query has begun meanwhile: Spark tells of an end late."""
        with self._lock:
            if self._runs.get(query) != run:
                return False
            del self._runs[query]
            self._names.pop(query, None)
            self._latest_known.pop(query, None)
            self._reads.pop(query, None)
            return True

    def session(self, session_id: str) -> SparkSession:
        return self._sessions[session_id]

    def defaults(self, session_id: str) -> Mapping[str, str]:
        """The session's settings as they were when its newest run began."""
        return self._defaults[session_id]

    def facts(self, request: Request) -> Facts:
        with self._lock:
            spark = self._sessions.get(request.session)
            queries, names = sorted(self._runs), dict(self._names)
        if spark is None:
            return Facts(queries=queries)
        query = _query_of(request) if request.verb is Verb.COMMIT_EPOCH else None
        offsets = NOT_KNOWN if query is None else self._offsets(spark, query, Epoch(request.epoch))
        if not request.streaming or request.session not in self._defaults:
            self._read_defaults(request.session)
        defaults = self._defaults[request.session]
        txn: Mapping[str, str] = {}
        # A batch write takes its transaction when it is planned; what others set in the session later is not its own.
        if request.verb is Verb.PLAN and not request.streaming:
            options = parse_options(request.options, streaming=False, defaults=defaults)
            if options.txn_app_id is None:
                txn = self._jvm.submit(_taken, spark, format_named(options.table_format)).result()
        reads = self._locations_read(spark, query, request)
        reader = request.verb is Verb.SETTINGS
        side_by_side = self._jvm.submit(_side_by_side, spark).result() if reader else None
        return Facts(
            defaults,
            queries,
            offsets.fingerprint,
            offsets.planned,
            offsets.latest or (),
            names=names,
            txn=txn,
            reads=reads,
            side_by_side=side_by_side,
        )

    def _offsets(self, spark: SparkSession, query: QueryId, epoch: Epoch) -> EpochOffsets:
        """What the sources have is asked for until it is known, which is in the first epoch that a run plans itself."""
        with self._lock:
            run = self._runs.get(query)
            ask = run is not None and self._latest_known.get(query) != run
        offsets = self._jvm.submit(epoch_offsets, spark, query, epoch, with_latest=ask).result()
        if run is not None and offsets.latest is not None:
            with self._lock:
                # It may have ended meanwhile.
                if self._runs.get(query) == run:
                    self._latest_known[query] = run
        return offsets

    def _locations_read(self, spark: SparkSession, query: QueryId | None, request: Request) -> Sequence[str] | None:
        """What a write that is committed reads, or the table that a read names. A query has one plan for all of a run,
        so it is asked for once."""
        if request.verb is Verb.SETTINGS:
            name = None if "path" in request.options else request.options.get("table")
            return None if name is None else [self._jvm.submit(location_of, spark, name).result()]
        if request.verb is Verb.COMMIT_BATCH and request.execution:
            return self._jvm.submit(batch_reads, spark, request.execution).result()
        if query is None:
            return None
        with self._lock:
            if query in self._reads:
                return self._reads[query]
        reads = self._jvm.submit(stream_reads, spark, query).result()
        with self._lock:
            if query in self._runs:
                self._reads[query] = reads
        return reads

    def _read_defaults(self, session_id: str) -> None:
        """Asks the session for its settings, which takes some forty milliseconds: not in an epoch's path."""
        self._defaults[session_id] = self._jvm.submit(settings_of, self._sessions[session_id]).result()


def settings_of(spark: SparkSession) -> Mapping[str, str]:
    """What the session sets, as options; of Hadoop's settings all that Spark itself would use."""
    jvm: Any = spark._jvm
    session = spark._jsparkSession
    found = session.sessionState().newHadoopConf().getPropsWithPrefix(hadoop.PREFIX)
    of_hadoop = entries(jvm.scala.jdk.javaapi.CollectionConverters.asScala(found))
    settings = {hadoop.PREFIX + key: value for key, value in of_hadoop.items()}
    return session_options(settings | entries(session.conf().getAll()))


def _side_by_side(spark: SparkSession) -> int:
    """How many tasks run at a time, as far as Spark knows: it cuts its own scans by that."""
    return spark.sparkContext.defaultParallelism


def _query_of(request: Request) -> QueryId | None:
    """Any report names the query; whether all of them do is the committer's to check."""
    report = next((data for data in request.reports if data), None)
    return None if report is None else decode_report(report).attempt.query


def _taken(spark: SparkSession, table_format: FormatSettings) -> Mapping[str, str]:
    """What the format's own settings say for a batch write that takes them. As there, some of them are taken once."""
    asked = ((key, spark.conf.get(key, None)) for key in table_format.session_settings)
    found = {key: value for key, value in asked if value is not None}
    if len(found) == len(table_format.session_settings):
        for key, once in table_format.taken_once.items():
            if spark.conf.get(once, "false") == "true":
                spark.conf.unset(key)
    return found
