"""Drivers that stand still while their successors go on, and wake up beside them."""

from __future__ import annotations

from collections.abc import Sequence

from .evidence import Objects
from .faulty_proxy import Fault, FaultyProxy, Rule
from .kills import WAITING, Start
from .processes import Driver
from .steps import next_with
from .streams import Stream

# How Spark says that another driver has written an entry of its checkpoint, or of a file source's own log:
# the entry was there already, or it came while this driver renamed its own into place.
SPARK_NOTICED = (
    "CONCURRENT_STREAM_LOG_UPDATE",
    "Multiple streaming jobs detected",
    "Multiple streaming queries are concurrently using",
)
# In a traceback: whatever goes wrong in lakecommit inside a worker of Spark's has come in through its modules there.
OURS = "/spark_ext/"


def assert_only_spark_minds(driver: Driver) -> None:
    """The driver has read all input, or has failed because Spark noticed another one, and for no reason of ours."""
    failure = driver.failure or ""
    noticed = any(words in failure for words in SPARK_NOTICED) and OURS not in failure
    assert driver.ended or noticed, f"{failure}\n{driver.text[-8000:]}"


def paused_at_steps(start: Start, stream: Stream, proxy: FaultyProxy, pauses: Sequence[tuple[str, Fault]]) -> None:
    """Each driver is paused while it waits for the answer to one request, and wakes up when its successor has finished
    two epochs and goes on.

    The request has had no effect, or has had it, or has it just before the driver wakes up.
    """
    asleep: tuple[Driver, Rule] | None = None
    for step, moment in pauses:
        # Two epochs are finished before the driver comes so far, also where the first is a repetition.
        epoch, pattern = next_with(stream, step, Objects.of(stream.place).newest_seal + 3)
        rule = proxy.rule("PUT", pattern, moment)
        print(f"pause at the {step} of epoch {epoch}: {moment.name}")
        driver = start(stream.job(options=WAITING))
        _wake_beside(driver, asleep)
        driver.wait_until(rule.met.is_set, f"{step} of epoch {epoch}")
        driver.pause()
        asleep = driver, rule
    last = start(stream.job())
    _wake_beside(last, asleep)
    last.finish()


def _wake_beside(successor: Driver, asleep: tuple[Driver, Rule] | None) -> None:
    if asleep is None:
        return
    successor.wait_until(lambda: len(successor.epochs) >= 2, "two epochs of the successor")
    driver, rule = asleep
    rule.let_go.set()
    assert rule.done.wait(240)
    driver.wake()
    driver.wait()
    assert not driver.ended, driver.text[-8000:]
    assert_only_spark_minds(driver)
