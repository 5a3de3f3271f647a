"""A driver that stands still while its successor goes on, and wakes up beside it."""

from __future__ import annotations

import pytest

from .evidence import KINDS, Objects, assert_exactly_once
from .streams import stream_on_disk

pytestmark = pytest.mark.spark

# What Spark says to a driver that finds another's entry in the log of its own checkpoint.
SPARK_NOTICED = "CONCURRENT_STREAM_LOG_UPDATE"


def test_a_paused_driver_wakes_up_beside_its_successor(start, tmp_path, rng):
    stream = stream_on_disk(tmp_path, files=12)
    kind, more = rng.choice(KINDS), rng.randint(3, 6)
    print(f"pause after {more} {kind}")
    before = Objects.of(stream.place)
    old = start(stream.job())
    old.wait_until(lambda: Objects.of(stream.place).new(kind, before) >= more, f"{more} {kind}")
    old.pause()
    successor = start(stream.job())
    successor.wait_until(lambda: len(successor.epochs) >= 2, "two epochs of the successor")
    old.wake()
    for driver in (old, successor):
        driver.wait()
        # Whichever comes second to an entry of the checkpoint gives up. Nothing of ours may be the reason.
        assert driver.ended or SPARK_NOTICED in (driver.failure or ""), driver.text[-8000:]
    if not (old.ended or successor.ended):
        start(stream.job()).finish()
    assert_exactly_once(stream)
