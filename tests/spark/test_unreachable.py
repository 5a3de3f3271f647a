"""A commit worker that cannot reach the committer in the driver while epochs are pending there."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pytest

import lakecommit
from lakecommit.demo.place import Place
from lakecommit.spark_ext import registration
from tests.process.evidence import ids_by_delta_spark, read_log
from tests.process.faulty_proxy import Fault

from .faults import wait_for
from .streams import EPOCH_BY_EPOCH, Source

pytestmark = pytest.mark.spark


@contextmanager
def unreachable():
    """Workers cannot talk to the committer, which goes on: it has its epochs, and a commit under way."""
    (driver,) = registration._drivers.values()
    key = Path(driver.service.directory, "committer.key")
    away = key.rename(key.with_suffix(".away"))
    try:
        yield
    finally:
        away.rename(key)


def test_what_is_pending_in_the_driver_is_committed_first(spark, tmp_path, place_on_s3, proxy):
    """The driver's committer stands still in version 1, of epoch 0, with the next two pending in its memory.

    The worker that commits epoch 3 commits all of them. Then the driver's request goes on and finds its place taken,
    by more epochs than it brings.
    """
    source, held = Source(tmp_path / "input"), proxy.rule("PUT", r"_delta_log/0*1\.json", Fault.HELD_LATE)
    for epoch in range(3):
        source.add([epoch])
    way = {**place_on_s3.spark_options, "store.endpoint": proxy.endpoint, "store.read_timeout": "300s"}
    writer = source.frame(spark).writeStream.format("lakecommit").options(**EPOCH_BY_EPOCH, **way, commitWait="0")
    query = writer.option("checkpointLocation", str(tmp_path / "c")).start(place_on_s3.location)
    try:
        query.processAllAvailable()
        assert held.met.wait(60)
        assert pending_of(query) == 3
        with unreachable():
            source.add([3])
            query.processAllAvailable()
        assert dense_epochs(place_on_s3) == [0, 1, 2, 3], (
            "the pending ones first, while the driver's committer stands still"
        )
        held.let_go.set()
        assert held.done.wait(60)
        source.add([4])
        query.processAllAvailable()
    finally:
        query.stop()
    wait_for(lambda: dense_epochs(place_on_s3) == [0, 1, 2, 3, 4])
    assert ids_by_delta_spark(spark, place_on_s3) == [0, 1, 2, 3, 4]


def pending_of(query) -> int:
    """How many epochs of the query are pending in the driver."""
    (found,) = (queries[query.id] for queries in lakecommit.metrics().values() if query.id in queries)
    return found["pending_epochs"]


def dense_epochs(place: Place) -> list[int]:
    """The epochs of all versions, in order. Each version goes on where the one before it ended."""
    found: list[int] = []
    for version in read_log(place)[1:]:
        ((begin, end),) = version[0]["commitInfo"]["lakecommit"]["epochs"].values()
        assert begin == len(found), "the mark jumped over an epoch, or went back"
        found += range(begin, end + 1)
    return found
