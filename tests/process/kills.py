"""Runs a stream to its end through drivers that are killed, each at a moment of its own."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from .evidence import KINDS, Objects
from .faulty_proxy import Fault, FaultyProxy, Rule
from .job import Job
from .processes import Driver
from .streams import Stream

Start = Callable[[Job], Driver]

STEPS = {
    "manifest": r"/writers/0*{epoch}/",
    "data": r"/0*{epoch}-\d+-[0-9a-f]+-\d+\.parquet",
    "seal": r"/seals/0*{epoch}\.avro",
    "version": r"_delta_log/0*{version}\.json",
}
# Nothing is given up while a request stands still.
WAITING = {"store.read_timeout": "300s"}
MOMENTS = (Fault.HELD_BEFORE, Fault.HELD_AFTER, Fault.HELD_LATE)


def killed_at_random_moments(start: Start, stream: Stream, rng: random.Random, kills: int, **job: Any) -> None:
    """Each kill comes some while after the table has got a few more objects of a kind."""
    for _ in range(kills):
        kind, more, delay_s = rng.choice(KINDS), rng.randint(1, 3), rng.uniform(0, 0.3)
        print(f"kill {delay_s:.3f} s after {more} more {kind}")
        before = Objects.of(stream.place)
        driver = start(stream.job(**job))
        driver.wait_until(
            lambda kind=kind, more=more, before=before: Objects.of(stream.place).new(kind, before) >= more,
            f"{more} more {kind}",
        )
        time.sleep(delay_s)
        driver.kill()
        assert not driver.ended, "the input was read before the kill; it needs more files"
    start(stream.job(**job)).finish()


def killed_at_steps(start: Start, stream: Stream, proxy: FaultyProxy, kills: Sequence[tuple[str, Fault]]) -> None:
    """Each kill comes while the driver waits for the answer to one request of the second epoch from there.

    The request has had no effect, or has had it, or has it when the next driver is just as far.
    """
    late: Rule | None = None
    for step, moment in kills:
        epoch = Objects.of(stream.place).newest_seal + 2
        rule = proxy.rule("PUT", STEPS[step].format(epoch=epoch, version=epoch + 1), moment)
        print(f"kill at the {step} of epoch {epoch}: {moment.name}")
        driver = start(stream.job(options=WAITING))
        driver.wait_until(rule.met.is_set, f"{step} of epoch {epoch}")
        _let_go(late)
        driver.kill()
        if moment is Fault.HELD_LATE:
            late = rule
        else:
            _let_go(rule)
    last = start(stream.job())
    last.wait_until(lambda: last.epochs, "an epoch of the last driver")
    _let_go(late)
    last.finish()


def _let_go(rule: Rule | None) -> None:
    if rule is not None:
        rule.let_go.set()
        assert rule.done.wait(240)
