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
from .steps import next_with
from .streams import Stream
from .tables import Look, nothing

Start = Callable[[Job], Driver]

# Nothing is given up while a request stands still.
WAITING = {"store.read_timeout": "300s"}
MOMENTS = (Fault.HELD_BEFORE, Fault.HELD_AFTER, Fault.HELD_LATE)


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
        epoch, pattern = next_with(stream, step, Objects.of(stream.place).newest_seal + 2)
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


def _let_go(rule: Rule | None) -> None:
    if rule is not None:
        rule.let_go.set()
        assert rule.done.wait(240)
