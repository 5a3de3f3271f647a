"""What a committer remembers of a query's run, beside its progress: pure, no I/O, no clock.

The theory. Spark runs a query, stops it, and runs it again; the same query may have a run that has been stopped and
whose last epoch is still under way, while the next one has begun. So runs are numbered, and whoever comes back from a
request compares the number. What is remembered of a query can be wrong in two ways, and each is told apart:

    doubted   what is remembered may not be what the store has: it is read again before it is relied on
    unread    the store may have sealed epochs that are not remembered: they are read even if nobody asks
    failure   what makes the query unable to go on; raised whenever it comes, until a new run begins or asks

`generation` counts how often what was remembered was forgotten: whoever seals across a request knows by it whether the
progress is still the one that it began with.

Events move a run by the table `TRANSITIONS`. One that cannot happen raises `IllegalEvent` and changes nothing.

    event         what it says                                           what it makes of doubts and failures
    Began         Spark starts the query: another number                 doubted; no failure; unread if it had failed
    Resumed       what earlier runs left is to be read, and how          doubted, unread
    Asked         an epoch has come, with what the run asks for          a failure from before it asked: doubted, unread
    Opened        it is about to be read, by somebody with settings
    Read          the store was read                                     not unread, unless doubted since that began
    Sealing       an epoch of the run is sealed or repeated
    Broke         an epoch went wrong, and Spark ends the run            doubted, unread
    Ended         Spark has ended the run
    Doubted       something else happened to the table                   doubted, unread where it says so
    Failed        it cannot go on                                        failure; neither doubted nor unread
    Forgotten     its progress is dropped                                not doubted; unread where something was pending
    Retried       it has ended and failed, and somebody asks again       no failure; doubted, unread
    Waits, Pressed, AtWork   one more, or one less, who waits for a snapshot, for room, or deals with an epoch
    Caught        how far the run is in its backlog
    InSnapshot    a snapshot has something of it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from lakecommit.errors import LakecommitError
from lakecommit.progress.backlog import Backlog
from lakecommit.progress.cadence import Pace
from lakecommit.progress.epochs import IllegalEvent
from lakecommit.progress.settings import TableSettings


class RunPhase(Enum):
    """How far a run is: it has begun, has asked for its first epoch, has sealed or repeated one."""

    BEGUN = "begun"
    ASKED = "asked"
    SEALED = "sealed"


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a query, by its `number`. `settings` and `pace` are what it asks for; None where nobody said so yet.

    `since_ms` is when its last snapshot was, or when it began. Until it has sealed or repeated an epoch, Spark may run
    the newest sealed one again. `waiting`, `pressed` and `busy` count those of this run.
    """

    number: int
    since_ms: int
    settings: TableSettings | None = None
    pace: Pace = field(default_factory=Pace)
    phase: RunPhase = RunPhase.BEGUN
    ended: bool = False
    doubted: bool = False
    unread: bool = False
    failure: LakecommitError | None = None
    generation: int = 0
    waiting: int = 0
    pressed: int = 0
    busy: int = 0
    backlog: Backlog | None = None

    @property
    def asked_for(self) -> TableSettings:
        assert self.settings is not None, "a query of which anything is known was read with settings"
        return self.settings

    @property
    def may_repeat(self) -> bool:
        return self.phase is not RunPhase.SEALED

    @property
    def is_idle(self) -> bool:
        """Whether nothing is lost where it is forgotten: it has asked for nothing here, nobody waits for it, and the
        store has nothing that somebody has to read. So it is with the runs of queries that write elsewhere."""
        owed = self.unread or self.failure is not None
        return self.phase is RunPhase.BEGUN and not (owed or self.waiting or self.pressed or self.busy)

    @property
    def in_backlog(self) -> bool:
        """Whether its commits are spaced, and nobody waits for them."""
        return self.pace.backlog_interval_ms > 0 and self.backlog is not None and not self.backlog.reached


@dataclass(frozen=True, slots=True)
class Began:
    number: int


@dataclass(frozen=True, slots=True)
class Resumed:
    settings: TableSettings
    pace: Pace


@dataclass(frozen=True, slots=True)
class Asked:
    settings: TableSettings
    pace: Pace


@dataclass(frozen=True, slots=True)
class Opened:
    """`settings` hold where the run has not said what it asks for."""

    settings: TableSettings


@dataclass(frozen=True, slots=True)
class Read:
    pass


@dataclass(frozen=True, slots=True)
class Sealing:
    pass


@dataclass(frozen=True, slots=True)
class Broke:
    pass


@dataclass(frozen=True, slots=True)
class Ended:
    pass


@dataclass(frozen=True, slots=True)
class Doubted:
    unread: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    error: LakecommitError


@dataclass(frozen=True, slots=True)
class Forgotten:
    """`left` says that something of it was pending, or about to be."""

    left: bool


@dataclass(frozen=True, slots=True)
class Retried:
    pass


@dataclass(frozen=True, slots=True)
class Waits:
    more: int


@dataclass(frozen=True, slots=True)
class Pressed:
    more: int


@dataclass(frozen=True, slots=True)
class AtWork:
    more: int


@dataclass(frozen=True, slots=True)
class Caught:
    backlog: Backlog


@dataclass(frozen=True, slots=True)
class InSnapshot:
    at_ms: int


def after(run: Run, event: Any) -> Run:
    """The run after `event`. Raises `IllegalEvent`, and changes nothing, if that cannot happen."""
    return TRANSITIONS[type(event)](run, event)


def _began(run: Run, event: Began) -> Run:
    if event.number <= run.number:
        raise IllegalEvent(f"run {event.number} cannot follow run {run.number}")
    return Run(
        event.number,
        run.since_ms,
        run.settings,
        run.pace,
        doubted=True,
        unread=run.unread or run.failure is not None,
        generation=run.generation,
        busy=run.busy,
    )


def _asked(run: Run, event: Asked) -> Run:
    asked = replace(run, settings=event.settings, pace=event.pace)
    if run.phase is not RunPhase.BEGUN:
        return asked
    if run.failure is not None:
        # It was refused with the settings of the run before.
        asked = replace(asked, failure=None, doubted=True, unread=True)
    return replace(asked, phase=RunPhase.ASKED)


def _sealing(run: Run, event: Sealing) -> Run:
    if run.phase is RunPhase.BEGUN:
        raise IllegalEvent("a run seals nothing before it has asked")
    return replace(run, phase=RunPhase.SEALED)


def _broke(run: Run, event: Broke) -> Run:
    if run.phase is RunPhase.BEGUN:
        raise IllegalEvent("no epoch of a run goes wrong before it has asked")
    return replace(run, phase=RunPhase.ASKED, doubted=True, unread=True)


def _failed(run: Run, event: Failed) -> Run:
    return replace(run, failure=event.error, doubted=False, unread=False)


def _retried(run: Run, event: Retried) -> Run:
    if not run.ended or run.failure is None:
        raise IllegalEvent("only a run that has failed and ended is tried again")
    return replace(run, failure=None, doubted=True, unread=True)


def _counted(name: str) -> Callable[[Run, Any], Run]:
    def count(run: Run, event: Waits | Pressed | AtWork) -> Run:
        number = getattr(run, name) + event.more
        if number < 0:
            raise IllegalEvent(f"the count of those who are {name} would fall below zero")
        return replace(run, **{name: number})

    return count


TRANSITIONS: Mapping[type, Callable[[Run, Any], Run]] = {
    Began: _began,
    Resumed: lambda run, event: replace(run, settings=event.settings, pace=event.pace, doubted=True, unread=True),
    Asked: _asked,
    Opened: lambda run, event: replace(run, settings=run.settings or event.settings),
    # Nothing is in doubt when a read begins. What is since then may be a seal that came after its listing.
    Read: lambda run, event: replace(run, unread=run.unread and run.doubted),
    Sealing: _sealing,
    Broke: _broke,
    Ended: lambda run, event: replace(run, ended=True),
    Doubted: lambda run, event: replace(run, doubted=True, unread=run.unread or event.unread),
    Failed: _failed,
    Forgotten: lambda run, event: replace(
        run, doubted=False, unread=run.unread or event.left, generation=run.generation + 1
    ),
    Retried: _retried,
    Waits: _counted("waiting"),
    Pressed: _counted("pressed"),
    AtWork: _counted("busy"),
    Caught: lambda run, event: replace(run, backlog=event.backlog),
    InSnapshot: lambda run, event: replace(run, since_ms=event.at_ms),
}
