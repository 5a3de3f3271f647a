"""A driver that stands still while its successor goes on, and wakes up beside it."""

from __future__ import annotations

import pytest

from .evidence import KINDS, Objects
from .kills import MOMENTS
from .pauses import assert_only_spark_minds, paused_at_steps
from .steps import STEPS
from .streams import stream_on_disk, stream_on_s3

# The simulation has drivers of both formats that sleep at every step, and wake up beside others.
pytestmark = [pytest.mark.spark, pytest.mark.soak]


def test_a_paused_driver_wakes_up_beside_its_successor(start, tmp_path, rng, table_format, assert_exactly_once):
    stream = stream_on_disk(tmp_path, 12, table_format)
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
        # Whichever comes second to an entry of the checkpoint gives up.
        assert_only_spark_minds(driver)
    if not (old.ended or successor.ended):
        start(stream.job()).finish()
    assert_exactly_once(stream)


def test_at_a_step_of_the_protocol_on_s3(start, tmp_path, rng, place_on_s3, proxy, table_format, assert_exactly_once):
    stream = stream_on_s3(tmp_path, 12, place_on_s3, proxy.endpoint, table_format)
    paused_at_steps(start, stream, proxy, [(rng.choice([*STEPS[table_format]]), rng.choice(MOMENTS))])
    assert_exactly_once(stream)


@pytest.mark.timeout(1800)
def test_at_every_step_of_the_protocol_on_s3(
    start, tmp_path, rng, place_on_s3, proxy, table_format, assert_exactly_once
):
    stream = stream_on_s3(tmp_path, 44 if table_format == "delta" else 75, place_on_s3, proxy.endpoint, table_format)
    pauses = [(step, moment) for step in STEPS[table_format] for moment in MOMENTS]
    rng.shuffle(pauses)
    paused_at_steps(start, stream, proxy, pauses)
    assert_exactly_once(stream)
