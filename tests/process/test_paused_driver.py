"""A driver that stands still while its successor goes on, and wakes up beside it."""

from __future__ import annotations

import pytest

from .evidence import KINDS, Objects, assert_exactly_once
from .streams import stream_on_disk

pytestmark = pytest.mark.spark

# How Spark says that another driver has written an entry of its checkpoint, or of a file source's own log:
# the entry was there already, or it came while this driver renamed its own into place.
SPARK_NOTICED = (
    "CONCURRENT_STREAM_LOG_UPDATE",
    "Multiple streaming jobs detected",
    "Multiple streaming queries are concurrently using",
)


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
        noticed = any(words in (driver.failure or "") for words in SPARK_NOTICED)
        assert driver.ended or noticed, driver.text[-8000:]
    if not (old.ended or successor.ended):
        start(stream.job()).finish()
    assert_exactly_once(stream)
