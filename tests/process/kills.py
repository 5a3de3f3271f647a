"""Runs a stream to its end through drivers that are killed, each at a moment of its own."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from tests.spark_log.entries import is_compaction

from .evidence import KINDS, Objects
from .faulty_proxy import Fault, FaultyProxy, Rule
from .job import Job
from .processes import Driver
from .streams import COMPACT_INTERVAL, Stream

Start = Callable[[Job], Driver]
# Looks at the table, again and again while a driver runs and after it has died. Raises where something is wrong.
Look = Callable[[], None]

STEPS = {
    "manifest": r"/writers/0*{epoch}/",
    "data": r"/0*{epoch}-\d+-[0-9a-f]+-\d+\.parquet",
    "seal": r"/seals/0*{epoch}\.avro",
    "version": r"_delta_log/0*{version}\.json",
}
# The log of a Parquet directory has no version that only makes the table: its numbers are epochs.
PARQUET_STEPS = {**STEPS, "version": r"_spark_metadata/{epoch}$", "compact": r"_spark_metadata/{epoch}\.compact$"}
# Nothing is given up while a request stands still.
WAITING = {"store.read_timeout": "300s"}
MOMENTS = (Fault.HELD_BEFORE, Fault.HELD_AFTER, Fault.HELD_LATE)


def nothing() -> None:
    pass


def killed_at_random_moments(
    start: Start, stream: Stream, rng: random.Random, kills: int, look: Look = nothing, **job: Any
) -> None:
    """Each kill comes some while after the table has got a few more objects of a kind."""
    for _ in range(kills):
        kind, more, delay_s = rng.choice(KINDS), rng.randint(1, 3), rng.uniform(0, 0.3)
        print(f"kill {delay_s:.3f} s after {more} more {kind}")
        before = Objects.of(stream.place)
        driver = start(stream.job(**job))
        driver.wait_until(
            lambda kind=kind, more=more, before=before: look() or Objects.of(stream.place).new(kind, before) >= more,
            f"{more} more {kind}",
        )
        time.sleep(delay_s)
        driver.kill()
        look()
        assert not driver.ended, "the input was read before the kill; it needs more files"
    start(stream.job(**job)).finish(look)


def killed_at_steps(
    start: Start, stream: Stream, proxy: FaultyProxy, kills: Sequence[tuple[str, Fault]], look: Look = nothing
) -> None:
    """Each kill comes while the driver waits for the answer to one request of the second epoch from there, or of the
    first after it that has such a request.

    The request has had no effect, or has had it, or has it when the next driver is just as far.
    """
    late: Rule | None = None
    for step, moment in kills:
        epoch, pattern = _request(stream, step)
        rule = proxy.rule("PUT", pattern, moment)
        print(f"kill at the {step} of epoch {epoch}: {moment.name}")
        driver = start(stream.job(options=WAITING))
        driver.wait_until(lambda rule=rule: look() or rule.met.is_set(), f"{step} of epoch {epoch}")
        _let_go(late)
        driver.kill()
        look()
        if moment is Fault.HELD_LATE:
            late = rule
        else:
            _let_go(rule)
    last = start(stream.job())
    last.wait_until(lambda: last.epochs, "an epoch of the last driver")
    _let_go(late)
    last.finish(look)


def _request(stream: Stream, step: str) -> tuple[int, str]:
    """The epoch that a driver is to be killed in, and what the key of its request looks like."""
    epoch = Objects.of(stream.place).newest_seal + 2
    if stream.table_format == "delta":
        return epoch, STEPS[step].format(epoch=epoch, version=epoch + 1)
    while step in ("version", "compact") and is_compaction(epoch, COMPACT_INTERVAL) != (step == "compact"):
        epoch += 1
    return epoch, PARQUET_STEPS[step].format(epoch=epoch)


def _let_go(rule: Rule | None) -> None:
    if rule is not None:
        rule.let_go.set()
        assert rule.done.wait(240)
