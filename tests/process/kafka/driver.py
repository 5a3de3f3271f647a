"""What tests do with Spark and Kafka, in a process of its own.

A session has the jars that its JVM was started with, and the one that other tests share has none of Kafka's. So these
functions run in a worker process, with one session for all of them.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lakecommit
from lakecommit.service.wire import Verb
from lakecommit.spark_ext.session import SparkSessions
from lakecommit.testing.sessions import delta_session
from tests.quick import QUICK
from tests.unit.progress.epochs import Epoch

PATIENCE_SECONDS = 120
_POLL_SECONDS = 0.02


@dataclass
class _Driver:
    spark: Any
    address: str
    admin: Any
    query: Any = None
    epochs: list[Epoch] = field(default_factory=list)


_driver: _Driver | None = None


def begin(address: str, classpath: str, warehouse: str) -> None:
    """Starts the session. The process ends with the one that started it, however that ends."""
    global _driver  # noqa: PLW0603 (the state of the worker process)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    conf = {**QUICK, "spark.sql.warehouse.dir": warehouse, "spark.driver.extraClassPath": classpath}
    spark = delta_session("lakecommit-kafka-tests", extra_conf=conf)
    lakecommit.register(spark)
    admin = spark._jvm.org.apache.kafka.clients.admin.Admin.create({"bootstrap.servers": address})
    _driver = _Driver(spark, address, admin)
    _record(_driver)


def end() -> None:
    _this().admin.close()
    _this().spark.stop()


def create_topic(name: str, partitions: int) -> None:
    spark = _this().spark
    topic = spark._jvm.org.apache.kafka.clients.admin.NewTopic(name, partitions, 1)
    _this().admin.createTopics([topic]).all().get()


def add_partitions(topic: str, total: int) -> None:
    spark = _this().spark
    more = spark._jvm.org.apache.kafka.clients.admin.NewPartitions.increaseTo(total)
    _this().admin.createPartitions({topic: more}).all().get()


def delete_topic(name: str) -> None:
    _this().admin.deleteTopics([name]).all().get()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while name in _this().admin.listTopics().names().get():
        assert time.monotonic() < deadline
        time.sleep(_POLL_SECONDS)


def produce(topic: str, *counts: int) -> None:
    """Writes as many records into each partition as `counts` says."""
    driver = _this()
    rows = [(topic, partition, str(n)) for partition, count in enumerate(counts) for n in range(count)]
    frame = driver.spark.createDataFrame(rows, "topic string, partition int, value string")
    frame.write.format("kafka").option("kafka.bootstrap.servers", driver.address).save()


def start(directory: str, *sources: dict[str, str], trigger: dict[str, Any], with_state: bool = False) -> None:
    """Starts a stream of several Kafka sources, each with its options, into one table."""
    driver = _this()
    driver.epochs.clear()
    first, *others = [_frame(driver, options) for options in sources]
    for other in others:
        first = first.union(other)
    if with_state:
        first = first.dropDuplicates()
    writer = first.writeStream.format("lakecommit").trigger(**trigger)
    driver.query = writer.option("checkpointLocation", f"{directory}/checkpoint").start(f"{directory}/table")


def epochs(at_least: int = 0) -> list[Epoch]:
    """The epochs of the run, once there are so many."""
    driver = _this()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(driver.epochs) < at_least:
        # Raises what the query failed with.
        driver.query.awaitTermination(_POLL_SECONDS)
        assert time.monotonic() < deadline, driver.epochs
    return list(driver.epochs)


def finish() -> list[Epoch]:
    """The epochs of an availableNow run, when it has read everything."""
    _this().query.awaitTermination()
    return epochs()


def stop(*, idle: bool = True) -> list[Epoch]:
    """The epochs of a run that is ended when none is under way, or else at once."""
    driver = _this()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while idle and driver.query.status["isTriggerActive"]:
        assert time.monotonic() < deadline
        time.sleep(_POLL_SECONDS)
    driver.query.stop()
    return epochs()


def rows(directory: str) -> int:
    return int(_this().spark.read.format("delta").load(f"{directory}/table").count())


def forget_last_commit(directory: str) -> None:
    """As if the driver had died after its last epoch, before Spark wrote that down: with state it runs it again."""
    commits = Path(directory, "checkpoint", "commits")
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    for name in (str(last), f".{last}.crc"):
        (commits / name).unlink()


def _frame(driver: _Driver, options: dict[str, str]) -> Any:
    reader = driver.spark.readStream.format("kafka").option("kafka.bootstrap.servers", driver.address)
    frame = reader.option("startingOffsets", "earliest").options(**options).load()
    return frame.selectExpr("topic", "partition", "offset")


def _record(driver: _Driver) -> None:
    facts = SparkSessions.facts

    def recording(self, request):
        found = facts(self, request)
        if request.verb is Verb.COMMIT_EPOCH:
            driver.epochs.append(Epoch(request.epoch, found.planned, found.latest))
        return found

    SparkSessions.facts = recording  # type: ignore[method-assign]


def _this() -> _Driver:
    assert _driver is not None
    return _driver


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
