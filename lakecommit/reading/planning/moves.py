"""What the planner of a stream holds, and when it lets go: pure, no I/O, no clock.

The theory. A planner holds a lease, and in the snapshot a plan. Both are dear: the lease keeps files, the plan memory
and disk. Spark asks for the same batch again, acknowledges a batch late, twice or not at all, and starts the query
again in another process. So nothing is let go because it was handed out, or because so many batches have come: the plan
goes with the acknowledgement of an offset at or past its last split, and the lease moves on with an acknowledged
version. What is wanted first is written in the offsets: whether the snapshot is over, which lease, which plan.

    new        nothing is held yet
    snapshot   the lease is held, and the plan is open or about to be built
    log        the lease is held; there is no plan, and there never will be one again
    lost       the lease is lost: all that is asked for fails
    stopped    the query has ended; nothing is asked for any more

Events move it by the table `TRANSITIONS`, which answers with what is to be done. An event that cannot happen raises
`IllegalEvent` and changes nothing.

    event         new            snapshot                        log              lost     stopped
    Asked         TakeLease      OpenPlan, if it is needed       -                fails    illegal
    Chosen        known          illegal                         illegal          illegal  illegal
    Took          snapshot/log   illegal                         illegal          illegal  illegal
    Opened        illegal        the plan is open                illegal          illegal  illegal
    Doubted       illegal        TakeAgain                       illegal          illegal  illegal
    Given         illegal        known to be planned             the same         illegal  illegal
    Acknowledged  -              log with ClosePlan, MoveOn      MoveOn           -        -
    Lost          lost           lost with ClosePlan             lost             -        -
    Stopped       stopped        stopped with ClosePlan          stopped          stopped  -

What is lost if a file goes follows from the same: `wants`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from lakecommit.errors import ContradictoryState, LakecommitError
from lakecommit.progress.epochs import IllegalEvent
from lakecommit.reading.planning.offsets import NO_VERSION, Begin, Offset, Phase, PlanName, StreamOffset


class Standing(Enum):
    NEW = "new"
    SNAPSHOT = "snapshot"
    LOG = "log"
    LOST = "lost"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Planning:
    """`keeps` is the version that the lease is for, or will be with its next renewal. `plan` is the open one, and
    `last` its last split; up to `behind` its splits are acknowledged. `given` is the furthest offset that this planner
    has planned or was asked for.

    As long as it is new: `goes_on` says that it goes on with the lease of an earlier run; else `first` is the version
    whose changes it reads first, None for a snapshot, or if that is not known yet."""

    standing: Standing = Standing.NEW
    lease: str = ""
    keeps: int = NO_VERSION
    plan: PlanName | None = None
    last: str = ""
    behind: str = ""
    given: tuple[int, int, str] | None = None
    failure: LakecommitError | None = None
    goes_on: bool = False
    first: int | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A batch that begins at `start` is to be planned, or one up to `end` planned again."""

    start: StreamOffset
    end: Offset | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """A new stream reads the log from version `first` on; a snapshot and what follows it where that is None."""

    first: int | None


@dataclass(frozen=True, slots=True)
class Took:
    """The lease holds for `keeps`; what comes first is read in `phase`."""

    lease: str
    keeps: int
    phase: Phase
    behind: str = ""


@dataclass(frozen=True, slots=True)
class Opened:
    plan: PlanName
    last: str


@dataclass(frozen=True, slots=True)
class Doubted:
    """When the lease was taken, files were gone of which only the plan, which is open now, can say whether they are
    wanted."""


@dataclass(frozen=True, slots=True)
class Given:
    """A batch up to `end` is planned."""

    end: Offset


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Spark has completed a batch up to `end`, for good."""

    end: StreamOffset


@dataclass(frozen=True, slots=True)
class Lost:
    failure: LakecommitError


@dataclass(frozen=True, slots=True)
class Stopped:
    pass


@dataclass(frozen=True, slots=True)
class TakeLease:
    """`lease` and `version` are None where the stream is new: then it chooses."""

    lease: str | None = None
    version: int | None = None
    phase: Phase | None = None
    behind: str = ""


@dataclass(frozen=True, slots=True)
class OpenPlan:
    """`plan` is the one that it has to be; None where the stream is new: then it is of the leased version."""

    plan: PlanName | None = None


@dataclass(frozen=True, slots=True)
class ClosePlan:
    """`released` says that it is needed no more, which is announced; otherwise it is only let go."""

    plan: PlanName
    released: bool


@dataclass(frozen=True, slots=True)
class MoveOn:
    """The lease is to keep `version` and later ones from its next renewal on."""

    version: int


@dataclass(frozen=True, slots=True)
class TakeAgain:
    """The lease is to be taken once more for `version`: the plan says now what is wanted."""

    version: int


class Wants(Enum):
    """Whether a file that a version removed is still to be read."""

    YES = "yes"
    NO = "no"
    AS_PLANNED = "if its splits are neither read nor acknowledged"
    IN_DOUBT = "only the plan could say, and it is not open yet"


Effect = TakeLease | OpenPlan | ClosePlan | MoveOn | TakeAgain
Moved = tuple[Planning, tuple[Effect, ...]]


def after(planning: Planning, event: Any) -> Moved:
    """The planner after `event`, and what is to be done. Raises `IllegalEvent`, and changes nothing, if that cannot
    happen, and what the planner has failed with, where it is asked for more."""
    return TRANSITIONS[type(event)](planning, event)


def wants(planning: Planning, new: bool | None) -> Wants:
    """What is wanted of a file that is gone: what later versions added, and what of the snapshot is not read yet.

    `new` is what the version said that added it after the one of the lease: whether its rows are new; None where it was
    there before.
    """
    is_new = planning.standing is Standing.NEW and not planning.goes_on
    if is_new and planning.first is None:
        return Wants.YES
    if new is not None:
        return Wants.YES if new else Wants.NO
    if is_new:
        return Wants.YES if planning.first == 0 else Wants.NO
    if planning.standing is Standing.LOG:
        return Wants.NO
    return Wants.IN_DOUBT if planning.plan is None else Wants.AS_PLANNED


def position(offset: StreamOffset) -> tuple[int, int, str]:
    """Offsets of one stream in their order."""
    if isinstance(offset, Begin):
        return (0, 0, "")
    in_log = offset.phase is Phase.LOG
    return (int(in_log) + 1, offset.version, offset.at.after)


def kept_from(start: StreamOffset, end: Offset) -> int:
    """The version that a lease has to keep, with all later ones, for a stream that goes on at `start`, where it begins
    as `end` says."""
    if isinstance(start, Offset) and start.phase is Phase.LOG:
        return max(start.version, 0)
    return end.plan.version if end.first is None else max(end.first - 1, 0)


def _asked(planning: Planning, event: Asked) -> Moved:
    standing, known = planning.standing, event.end or event.start
    if planning.failure is not None:
        raise planning.failure
    if standing is Standing.STOPPED:
        raise IllegalEvent("a stream that has stopped plans nothing")
    if standing is Standing.NEW:
        if isinstance(known, Begin):
            return Planning(), (TakeLease(),)
        start = event.start
        read = start.at.after if isinstance(start, Offset) and start.phase is Phase.SNAPSHOT else ""
        return Planning(goes_on=True), (TakeLease(known.lease, kept_from(start, known), known.phase, read),)
    if isinstance(known, Offset) and known.lease != planning.lease:
        raise ContradictoryState(
            f"the query has offsets of lease {known.lease}, and its planner holds {planning.lease}; its checkpoint was "
            "changed while it ran, so stop it and start it again"
        )
    if not _needs_plan(known):
        return _known(planning, known), ()
    if standing is Standing.LOG:
        if isinstance(known, Begin):
            return planning, ()
        raise ContradictoryState(
            f"the query asks for splits of its snapshot of version {known.plan.version} again, which it has read and "
            "acknowledged; its checkpoint was changed while it ran, so stop it and start it again"
        )
    effects = () if planning.plan is not None else (OpenPlan(None if isinstance(known, Begin) else known.plan),)
    return _known(planning, known), effects


def _needs_plan(known: StreamOffset) -> bool:
    """A batch that ends in the log has no rows of the snapshot: whoever planned it had none left."""
    return isinstance(known, Begin) or known.phase is Phase.SNAPSHOT


def _chosen(planning: Planning, event: Chosen) -> Moved:
    _require(planning, event, Standing.NEW)
    if planning.goes_on:
        raise IllegalEvent("a stream that goes on has begun before")
    return replace(planning, first=event.first), ()


def _took(planning: Planning, event: Took) -> Moved:
    _require(planning, event, Standing.NEW)
    standing = Standing.SNAPSHOT if event.phase is Phase.SNAPSHOT else Standing.LOG
    return Planning(standing, event.lease, event.keeps, behind=event.behind), ()


def _opened(planning: Planning, event: Opened) -> Moved:
    _require(planning, event, Standing.SNAPSHOT)
    if planning.plan is not None:
        raise IllegalEvent("a plan is open already")
    return replace(planning, plan=event.plan, last=event.last), ()


def _doubted(planning: Planning, event: Doubted) -> Moved:
    _require(planning, event, Standing.SNAPSHOT)
    if planning.plan is None:
        raise IllegalEvent("without a plan it stays in doubt what is wanted")
    return planning, (TakeAgain(planning.keeps),)


def _given(planning: Planning, event: Given) -> Moved:
    _require(planning, event, Standing.SNAPSHOT, Standing.LOG)
    if event.end.lease != planning.lease:
        raise IllegalEvent("an offset that is given out has the lease that is held")
    if event.end.phase is Phase.SNAPSHOT and planning.plan is None:
        raise IllegalEvent("no split is given out without a plan")
    return _known(planning, event.end), ()


def _acknowledged(planning: Planning, event: Acknowledged) -> Moved:
    end = event.end
    if planning.standing not in {Standing.SNAPSHOT, Standing.LOG} or isinstance(end, Begin):
        return planning, ()
    unknown = planning.given is None or position(end) > planning.given
    if end.lease != planning.lease or unknown:
        return planning, ()
    if end.phase is Phase.SNAPSHOT:
        planning = replace(planning, behind=max(planning.behind, end.at.after))
    effects: list[Effect] = []
    if planning.plan is not None and (end.phase is Phase.LOG or end.at.after >= planning.last):
        effects.append(ClosePlan(planning.plan, released=True))
        planning = replace(planning, standing=Standing.LOG, plan=None)
    if end.phase is Phase.LOG and end.version > planning.keeps:
        effects.append(MoveOn(end.version))
        planning = replace(planning, standing=Standing.LOG, keeps=end.version)
    return planning, tuple(effects)


def _lost(planning: Planning, event: Lost) -> Moved:
    if planning.standing in {Standing.LOST, Standing.STOPPED}:
        return planning, ()
    return replace(planning, standing=Standing.LOST, plan=None, failure=event.failure), _closing(planning)


def _stopped(planning: Planning, event: Stopped) -> Moved:
    return replace(planning, standing=Standing.STOPPED, plan=None), _closing(planning)


def _closing(planning: Planning) -> tuple[Effect, ...]:
    return () if planning.plan is None else (ClosePlan(planning.plan, released=False),)


def _known(planning: Planning, offset: StreamOffset) -> Planning:
    reached = position(offset)
    return planning if planning.given is not None and planning.given >= reached else replace(planning, given=reached)


def _require(planning: Planning, event: Any, *standings: Standing) -> None:
    if planning.standing not in standings:
        raise IllegalEvent(f"{type(event).__name__} cannot happen to a planner that is {planning.standing.value}")


TRANSITIONS: Mapping[type, Callable[[Planning, Any], Moved]] = {
    Asked: _asked,
    Chosen: _chosen,
    Took: _took,
    Opened: _opened,
    Doubted: _doubted,
    Given: _given,
    Acknowledged: _acknowledged,
    Lost: _lost,
    Stopped: _stopped,
}
