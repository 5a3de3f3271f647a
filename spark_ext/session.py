"""What the committer asks of the driver's Spark sessions, through py4j."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from lakecommit.committers import Facts
from lakecommit.model import CommitUser, Epoch
from lakecommit.state.codec import decode_report
from lakecommit.wire import Request, Verb

SETTING_PREFIX = "spark.lakecommit."
_SEPARATOR = "\x01"
_log = logging.getLogger("lakecommit.spark")


class SparkSessions:
    """The registered sessions of one context, and the runs of queries in them, which query listeners report."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[str, SparkSession] = {}
        self._defaults: dict[str, Mapping[str, str]] = {}
        self._runs: dict[CommitUser, str] = {}
        # py4j keeps a connection for each thread that calls: one for all requests, not one for each.
        self._jvm = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lakecommit-py4j")

    def add(self, session_id: str, spark: SparkSession) -> None:
        with self._lock:
            self._sessions[session_id] = spark
            self._runs.update({CommitUser(str(query.id)): str(query.runId) for query in spark.streams.active})

    def id_of(self, spark: SparkSession) -> str | None:
        """The id under which a session was added; several Python objects may stand for one session."""
        with self._lock:
            known = self._sessions.items()
            return next((key for key, each in known if each._jsparkSession.equals(spark._jsparkSession)), None)

    def started(self, session_id: str, user: CommitUser, run: str) -> None:
        """A run begins, with the settings that its session has at this moment: as in Spark, they hold until it ends."""
        self._read_defaults(session_id)
        with self._lock:
            self._runs[user] = run

    def ended(self, user: CommitUser, run: str) -> bool:
        """False where a new run of the same query has begun meanwhile: Spark tells of an end late."""
        with self._lock:
            if self._runs.get(user) != run:
                return False
            del self._runs[user]
            return True

    def facts(self, request: Request) -> Facts:
        with self._lock:
            spark = self._sessions.get(request.session)
            queries = sorted(self._runs)
        if spark is None:
            return Facts(queries=queries)
        offsets = None
        if request.verb is Verb.COMMIT_EPOCH:
            offsets = self._offsets(spark, request)
        if not request.streaming or request.session not in self._defaults:
            self._read_defaults(request.session)
        return Facts(self._defaults[request.session], queries, offsets)

    def _offsets(self, spark: SparkSession, request: Request) -> str | None:
        """Any report names the query; whether all of them do is the committer's to check."""
        report = next((data for data in request.reports if data), None)
        if report is None:
            return None
        user = decode_report(report).attempt.user
        return self._jvm.submit(_planned_offsets, spark, user, Epoch(request.epoch)).result()

    def _read_defaults(self, session_id: str) -> None:
        """Asks the session for its settings, which takes some forty milliseconds: not in an epoch's path."""
        self._defaults[session_id] = self._jvm.submit(_defaults, self._sessions[session_id]).result()


def _defaults(spark: SparkSession) -> Mapping[str, str]:
    """The session's `spark.lakecommit.*` settings. As one string: py4j takes a call for each entry of a map."""
    settings = spark._jsparkSession.conf().getAll().mkString(_SEPARATOR)
    pairs = (entry.partition(" -> ") for entry in settings.split(_SEPARATOR))
    return {key.removeprefix(SETTING_PREFIX): value for key, _, value in pairs if key.startswith(SETTING_PREFIX)}


def _planned_offsets(spark: SparkSession, user: CommitUser, epoch: Epoch) -> str | None:
    """A fingerprint of the offsets that Spark planned the epoch with, from the query's offset log.

    Spark's classes behind it are internal: whatever fails here costs a check and no data, so it is only logged.
    """
    try:
        query = spark.streams.get(user)
        if query is None:
            return None
        execution = query._jsq.streamingQuery()
        entry = execution.offsetLog().get(int(epoch))
        if entry.isEmpty():
            return None
        sources = entry.get().offsets()
        texts: list[str | None] = [
            offset.get().json() if offset.isDefined() else None
            for offset in (sources.apply(index) for index in range(sources.length()))
        ]
        for index, text in enumerate(list(texts)):
            number = _log_offset(text)
            if number is not None:
                texts.append(_file_source_entry(spark, execution.resolvedCheckpointRoot(), index, number))
    except Exception as error:
        _log.info("the planned offsets of query %s cannot be read: %s", user, type(error).__name__)
        return None
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


def _log_offset(offset: str | None) -> int | None:
    """The number that is all that a file source has for an offset: which files it means is in the source's own log."""
    parsed = json.loads(offset) if offset else None
    return parsed["logOffset"] if isinstance(parsed, dict) and set(parsed) == {"logOffset"} else None


def _file_source_entry(spark: SparkSession, checkpoint: str, source: int, number: int) -> str | None:
    """What a file source wrote down as its files for an offset, in the query's checkpoint."""
    jvm, settings = spark._jvm, spark._jsparkSession.sessionState().newHadoopConf()
    assert jvm is not None
    path = jvm.org.apache.hadoop.fs.Path(f"{checkpoint}/sources/{source}/{number}")
    files = path.getFileSystem(settings)
    # Every tenth entry or so is written together with all before it, under another name: that one grows with the
    # source's history, so that it is not read, and those epochs are known by their number alone.
    if not files.exists(path):
        return None
    stream = files.open(path)
    try:
        return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()
