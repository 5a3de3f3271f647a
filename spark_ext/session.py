"""What the committer asks of a Spark session, through py4j."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from lakecommit.model import CommitUser, Epoch

SETTING_PREFIX = "spark.lakecommit."
_log = logging.getLogger("lakecommit.spark")


class SparkQueries:
    """The running queries and settings of a session. `started` and `ended` come from the query listener."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._lock = threading.Lock()
        self._running = {CommitUser(query.id) for query in spark.streams.active}

    def started(self, user: CommitUser) -> None:
        with self._lock:
            self._running.add(user)

    def ended(self, user: CommitUser) -> None:
        with self._lock:
            self._running.discard(user)

    def running_queries(self) -> Sequence[CommitUser]:
        with self._lock:
            return sorted(self._running)

    def defaults(self) -> Mapping[str, str]:
        settings = self._spark.conf.getAll
        return {
            key.removeprefix(SETTING_PREFIX): value for key, value in settings.items() if key.startswith(SETTING_PREFIX)
        }

    def planned_offsets(self, user: CommitUser, epoch: Epoch) -> str | None:
        """A fingerprint of the newest entry of the query's offset log, if that is `epoch`'s.

        Spark's classes behind it are internal: whatever fails here costs a check and no data, so it is only logged.
        """
        try:
            query = self._spark.streams.get(user)
            if query is None:
                return None
            newest = query._jsq.streamingQuery().offsetLog().getLatest()
            if newest.isEmpty() or newest.get()._1() != epoch:
                return None
            sources = newest.get()._2().offsets()
            texts = [
                offset.get().json() if offset.isDefined() else None
                for offset in (sources.apply(index) for index in range(sources.length()))
            ]
        except Exception as error:
            _log.info("the planned offsets of query %s cannot be read: %s", user, type(error).__name__)
            return None
        return hashlib.sha256(json.dumps(texts).encode()).hexdigest()
