"""The thread that keeps a lease alive, for callers without a loop."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from lakecommit.clock import SystemClock
from lakecommit.errors import InvalidInput, LeaseLost
from lakecommit.leases import taking
from lakecommit.leases.holder import Holder
from lakecommit.leases.keeping import Keeper
from lakecommit.leases.taking import Parts
from lakecommit.state.lease_layout import LEASES, CutName, parse_lease
from tests.lake.clocks import ShiftedClock
from tests.lake.timed import TimedStore

from .test_keeping import RemovedIn
from .tools import HOUR_MS, WHO, parts

LEASE = f"{0xA:032x}"


class Shifted(ShiftedClock):
    """The thread sleeps in real time: nothing here waits for it."""

    async def sleep(self, seconds: float) -> None:
        await SystemClock.sleep(self, seconds)


class Held:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(taking, "LOOKING_MS", 0)
        self.store, self.clock = TimedStore(), Shifted()
        self.holder = Holder(self._make)

    def _make(self) -> tuple[Keeper, Parts]:
        of = Parts(self.store, RemovedIn(), WHO, **parts(clock=self.clock))
        return Keeper(of, "memory://timed", LEASE, HOUR_MS), of

    def versions(self) -> list[int]:
        names = [parse_lease(path) for path in self.store.paths(LEASES)]
        return [name.version for name in names if name is not None]


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Any:
    found = Held(monkeypatch)
    yield found
    found.holder.release().join()


def test_a_thread_that_nobody_waits_for_holds_it(held: Held) -> None:
    held.holder.take(3)
    (thread,) = [each for each in threading.enumerate() if each is held.holder._thread]
    assert thread.daemon
    assert (held.holder.id, held.holder.version, held.versions()) == (LEASE, 3, [3])


def test_a_check_renews_once_half_of_the_time_has_passed(held: Held) -> None:
    held.holder.take(3)
    asked = len(held.store.requests)
    held.holder.check()
    assert len(held.store.requests) == asked
    held.clock.shift_ms += HOUR_MS // 2 + 1000
    held.holder.check()
    assert [verb for verb, _ in held.store.requests[asked:]] == ["create", "list", "list", "delete"]


def test_a_check_after_a_long_pause_finds_the_loss_before_anything_is_planned(held: Held) -> None:
    held.holder.take(3)
    held.clock.shift_ms += 3 * HOUR_MS
    held.store.hold(CutName(6, f"{1:032x}").path)
    with pytest.raises(LeaseLost, match="version 5"):
        held.holder.check()
    with pytest.raises(LeaseLost):
        held.holder.check()


def test_stopping_keeps_it_and_releasing_does_not(held: Held) -> None:
    held.holder.take(3)
    held.holder.stop()
    assert held.versions() == [3]
    assert not held.holder._thread.is_alive()
    again = Holder(held._make)
    again.take(4)
    again.move_on(5)
    again.release().join()
    assert held.versions() == [3], "what the other process put is left to its time"


def test_what_goes_wrong_in_the_making_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> Any:
        raise InvalidInput("no such store")

    with pytest.raises(InvalidInput, match="no such store"):
        Holder(make)


def test_after_its_end_nothing_hangs(held: Held) -> None:
    held.holder.take(3)
    held.holder.release().join()
    held.holder.check()
    held.holder.move_on(9)
    held.holder.release()
    with pytest.raises(InvalidInput, match="released"):
        held.holder.take(4)


def test_a_copy_of_the_process_is_told_instead_of_waiting_for_ever(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    held.holder.take(3)
    held.clock.shift_ms += HOUR_MS
    with monkeypatch.context() as copy:
        copy.setattr("lakecommit.leases.holder.os.getpid", lambda: -1)
        with pytest.raises(InvalidInput, match="in this process"):
            held.holder.check()
    held.holder.check()


def test_a_copy_of_the_process_learns_nothing_and_so_says_nothing_good(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However fresh the lease was when it was copied: the process that holds it may have lost or ended it since."""
    held.holder.take(3)
    with monkeypatch.context() as copy:
        copy.setattr("lakecommit.leases.holder.os.getpid", lambda: -1)
        with pytest.raises(InvalidInput, match="in this process"):
            held.holder.check()
    held.holder.check()
