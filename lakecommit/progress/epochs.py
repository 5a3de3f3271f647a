"""The committer's decisions: pure, no I/O, no clock.

The theory. A query's epochs are dense. Each is in one of four places, and only ever moves right:

    not sealed  ->  sealed, no snapshot holds it ("pending")  ->  in a snapshot ("done")  ->  released

`Progress` says where the frontier between those places is for one query in one table. It is rebuilt from the table's
marks and the seals whenever a run of the query begins, and forgotten after every failure: nothing in it is the only
copy of anything. Events move it by the table `TRANSITIONS`; an event that is illegal in a phase raises `IllegalEvent`
and changes nothing.

    phase      event         next phase   what it says
    STARTING   Replayed      READY        marks and pending seals were read from the store
    READY      Reported      SEALING      a fresh epoch has all its reports; its seal may be put
    READY      Repeated      READY        Spark ran the newest epoch again, as the first of a run
    SEALING    Sealed        READY        the seal is durable, ours or the one of somebody who was first
    READY      MarksSeen     READY        the table was read: epochs that the mark has reached are done
    SEALING    MarksSeen     SEALING      the same, while a seal is under way

An epoch is judged once, by `judge_epoch`, before its seal is put: fresh, a repetition, or refused loudly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from lakecommit.errors import ContradictoryState, LakecommitError
from lakecommit.model import Epoch, Marks, QueryId, Report, SealedEpoch, Totals, Winner
from lakecommit.state.codec import digest_of

EMPTY_EPOCHS_PER_SNAPSHOT = 1000
# A snapshot of several epochs adds no more files than this, so that its body is bounded: some ten megabytes.
FILES_PER_SNAPSHOT = 10_000


class Phase(Enum):
    STARTING = "starting"
    READY = "ready"
    SEALING = "sealing"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one query has come in one table. `pending` is dense, in order, and follows the mark.

    `load` is how much of it there is. Epochs without rows do not count: the next snapshot's mark covers them. `anew`
    says that the table was made anew, which the user has accepted: without a mark, the first epoch may be any. Another
    sink went past the epochs of `passed`, first and last, of which a replay has seen that no rows are missing: the next
    version says so.
    """

    query: QueryId
    phase: Phase = Phase.STARTING
    marks: Marks = field(default_factory=Marks)
    newest_seal: SealedEpoch | None = None
    pending: tuple[SealedEpoch, ...] = ()
    load: Totals = field(default_factory=Totals)
    sealing: Epoch | None = None
    first_of_run: bool = True
    anew: bool = False
    passed: tuple[Epoch, Epoch] | None = None

    @property
    def newest(self) -> Epoch | None:
        """The newest epoch that is sealed or done: the next one is one more."""
        sealed = None if self.newest_seal is None else self.newest_seal.epoch
        return max((epoch for epoch in (self.marks.mark, sealed) if epoch is not None), default=None)


@dataclass(frozen=True, slots=True)
class Replayed:
    """`pending` are the seals after the mark, in order; `newest_seal` is the newest of all, pending or not."""

    marks: Marks
    newest_seal: SealedEpoch | None
    pending: tuple[SealedEpoch, ...]


@dataclass(frozen=True, slots=True)
class Reported:
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Repeated:
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Sealed:
    seal: SealedEpoch


@dataclass(frozen=True, slots=True)
class MarksSeen:
    marks: Marks


Event = Replayed | Reported | Repeated | Sealed | MarksSeen


class IllegalEvent(LakecommitError):
    """An event that cannot happen in this phase; the progress is unchanged."""


class EpochVerdict(Enum):
    FRESH = "fresh"
    REPEATED = "repeated"


def advance(progress: Progress, event: Event) -> Progress:
    """The progress after `event`. Raises `IllegalEvent`, and changes nothing, if the table does not have it."""
    transition = TRANSITIONS.get((progress.phase, type(event)))
    if transition is None:
        raise IllegalEvent(f"{type(event).__name__} cannot happen while {progress.phase.value}: {event}")
    return transition(progress, event)


def judge_epoch(progress: Progress, epoch: Epoch, fingerprint: str | None, table_id: str = "") -> EpochVerdict:
    """Whether `epoch`, whose planned offsets have `fingerprint`, may be sealed or is the newest one again.

    Spark repeats only the newest epoch, only as the first of a run, and with the same offsets. Everything else means
    that the checkpoint was rewound, copied or pointed at another table: going on would repeat or lose rows.
    """
    newest = progress.newest
    if newest is None:
        if epoch == 0 or progress.anew:
            return EpochVerdict.FRESH
        raise _unknown_here(progress.query, epoch, table_id)
    if epoch == newest + 1:
        return EpochVerdict.FRESH
    if epoch == newest and progress.first_of_run:
        _check_fingerprint(progress, epoch, fingerprint)
        return EpochVerdict.REPEATED
    relation = "again" if epoch <= newest else f"without epoch {newest + 1}"
    raise ContradictoryState(
        f"query {progress.query} runs epoch {epoch} {relation}, but epoch {newest} is the newest that is sealed or "
        "committed: its checkpoint was rewound, copied or damaged; nothing was committed; restore the newest "
        "checkpoint, or start with a new checkpointLocation from the offsets that you want",
        entry="rewound-checkpoint",
    )


def _unknown_here(query: QueryId, epoch: Epoch, table_id: str) -> ContradictoryState:
    accept = (
        f"To go on from epoch {epoch} with the table as it is, without reading any input again, start the query with "
        f"the option acceptTableId={table_id}; otherwise "
    )
    return ContradictoryState(
        f"query {query} begins with epoch {epoch}, but the table {f'(id {table_id}) ' if table_id else ''}has neither "
        "a mark nor a seal of it: it was made anew, together with what the query kept in it, or the checkpoint has "
        f"written to another table; nothing was committed. {accept if table_id else ''}point the query at the table "
        "that it wrote to, or start it with a new checkpointLocation"
    )


def need_not_run(progress: Progress, epoch: Epoch, fingerprint: str | None) -> bool:
    """Whether all is decided of an epoch that Spark is about to repeat: it is the newest, sealed, with these offsets.

    What cannot be known is left to `judge_epoch`, once Spark has run it.
    """
    seal = progress.newest_seal
    if seal is None or seal.epoch != epoch or progress.newest != epoch:
        return False
    return fingerprint is not None and fingerprint == seal.fingerprint


def knows_newest_seal(progress: Progress) -> bool:
    """Whether the next seal can be chained to the one before.

    Not where another driver has committed epochs since the seals were read: their seals are not known here, and a seal
    that does not lead to them would make them look like a zombie's.
    """
    own, seal = progress.marks.own, progress.newest_seal
    return own is None or (seal is not None and seal.epoch >= own)


def winners_of(reports: Sequence[Report | None], query: QueryId, epoch: Epoch) -> tuple[Winner, ...]:
    """The winners that the reports of a complete epoch make. Raises if a report is missing, twice or foreign."""
    missing = [number for number, report in enumerate(reports) if report is None]
    if missing or not reports:
        raise ContradictoryState(
            f"epoch {epoch} of {query} has no report of {len(missing) or 'any'} of its {len(reports)} tasks: nothing "
            "was sealed; Trigger.Continuous is not supported, use a micro-batch trigger"
        )
    present = [report for report in reports if report is not None]
    for report in present:
        if (report.attempt.query, report.attempt.epoch) != (query, epoch):
            raise ContradictoryState(
                f"a report of {report.attempt} came for epoch {epoch} of {query}: nothing was sealed; start the query "
                "again"
            )
        if report.skipped:
            raise ContradictoryState(
                f"task {report.attempt.task} skipped epoch {epoch} of {query} as done, but it is not: nothing was "
                "sealed; start the query again"
            )
    tasks = sorted(report.attempt.task for report in present)
    if tasks != list(range(len(present))):
        raise ContradictoryState(
            f"epoch {epoch} of {query} has reports of tasks {tasks[:20]}, with gaps or twice: nothing was sealed; "
            "start the query again"
        )
    ordered = sorted(present, key=lambda report: report.attempt.task)
    return tuple(Winner(r.attempt.task, r.attempt.id, len(r.manifests), digest_of(r.manifests)) for r in ordered)


def is_worth_a_snapshot(progress: Progress, empty_epochs: int = EMPTY_EPOCHS_PER_SNAPSHOT) -> bool:
    """Whether there is anything for the next snapshot to take."""
    return progress.load.epochs > 0 or len(progress.pending) >= empty_epochs


def next_run(
    progress: Progress,
    empty_epochs: int = EMPTY_EPOCHS_PER_SNAPSHOT,
    files: int = FILES_PER_SNAPSHOT,
    *,
    one_epoch: bool = False,
) -> tuple[SealedEpoch, ...]:
    """The pending epochs that the next snapshot takes: up to the last one that has rows, and up to `files` files.

    An epoch is never split, so that the first one with rows is taken however many files it has. One that replaces the
    table shares its snapshot with no other that changes anything. Empty epochs need no snapshot, since the next mark
    covers them, until `empty_epochs` have gathered. With `one_epoch` each is a snapshot, also an empty one.
    """
    if one_epoch:
        return progress.pending[:1]
    end, room = 0, files
    for index, seal in enumerate(progress.pending):
        if not seal.empty:
            if end and (seal.totals.files > room or seal.replaces or progress.pending[end - 1].replaces):
                break
            end, room = index + 1, room - seal.totals.files
    if not end and is_worth_a_snapshot(progress, empty_epochs):
        return progress.pending
    return progress.pending[:end]


def is_passed(progress: Progress, marks: Marks) -> bool:
    """Whether another sink went past epochs that are pending: its mark has reached them, and the own one has not."""
    passed = _passed(marks)
    if passed is None:
        return False
    return any(passed[0] <= seal.epoch <= passed[1] for seal in progress.pending if not seal.empty)


def done_epochs(queries: Iterable[Progress]) -> Mapping[QueryId, Epoch]:
    """For each query the newest epoch that a task need not write again."""
    return {each.query: each.newest for each in queries if each.newest is not None}


def _check_fingerprint(progress: Progress, epoch: Epoch, fingerprint: str | None) -> None:
    seal = progress.newest_seal
    if seal is None or seal.epoch != epoch or None in (fingerprint, seal.fingerprint):
        return
    if fingerprint == seal.fingerprint:
        return
    raise ContradictoryState(
        f"query {progress.query} runs epoch {epoch} again with other offsets than those that it was sealed with: its "
        "checkpoint lost its newest entries; nothing was committed; restore the newest checkpoint, or start with a "
        "new checkpointLocation from the offsets that you want"
    )


def _replayed(progress: Progress, event: Replayed) -> Progress:
    check_dense(progress.query, event.marks, event.pending, anew=progress.anew)
    return replace(
        progress,
        phase=Phase.READY,
        marks=event.marks,
        newest_seal=event.newest_seal,
        pending=event.pending,
        load=_load(event.pending),
        passed=_passed(event.marks),
    )


def _reported(progress: Progress, event: Reported) -> Progress:
    first = progress.newest is None and progress.anew
    if not first and event.epoch != (-1 if progress.newest is None else progress.newest) + 1:
        raise IllegalEvent(f"epoch {event.epoch} does not follow {progress.newest}")
    return replace(progress, phase=Phase.SEALING, sealing=event.epoch, first_of_run=False)


def _repeated(progress: Progress, event: Repeated) -> Progress:
    if event.epoch != progress.newest or not progress.first_of_run:
        raise IllegalEvent(f"epoch {event.epoch} is not a repetition of {progress.newest}")
    return replace(progress, first_of_run=False)


def _sealed(progress: Progress, event: Sealed) -> Progress:
    if event.seal.epoch != progress.sealing:
        raise IllegalEvent(f"epoch {event.seal.epoch} was sealed while {progress.sealing} was meant to be")
    mark = progress.marks.mark
    # Another driver may have sealed and committed this epoch before our look at the table showed its mark.
    done = mark is not None and event.seal.epoch <= mark
    ready = replace(progress, phase=Phase.READY, sealing=None, newest_seal=event.seal)
    if done:
        return ready
    return replace(ready, pending=(*progress.pending, event.seal), load=progress.load + event.seal.totals)


def _marks_seen(progress: Progress, event: MarksSeen) -> Progress:
    for before, now in ((progress.marks.mark, event.marks.mark), (progress.marks.own, event.marks.own)):
        if before is not None and (now is None or now < before):
            raise ContradictoryState(
                f"the mark of query {progress.query} went back from {before} to {now}: the table was restored or "
                "recreated under the stream; nothing was committed; start the query with a new checkpointLocation"
            )
    if progress.passed is not None and event.marks.own is not None and event.marks.own >= progress.passed[1]:
        progress = replace(progress, passed=None)
    mark = event.marks.mark
    if mark is None or not progress.pending or progress.pending[0].epoch > mark:
        return replace(progress, marks=event.marks)
    pending = tuple(seal for seal in progress.pending if seal.epoch > mark)
    return replace(progress, marks=event.marks, pending=pending, load=_load(pending))


def _passed(marks: Marks) -> tuple[Epoch, Epoch] | None:
    own = -1 if marks.own is None else int(marks.own)
    return None if marks.mark is None or marks.mark <= own else (Epoch(own + 1), marks.mark)


def _load(pending: Iterable[SealedEpoch]) -> Totals:
    return sum((seal.totals for seal in pending), Totals())


def check_dense(query: QueryId, marks: Marks, pending: Sequence[SealedEpoch], *, anew: bool = False) -> None:
    expected = -1 if marks.mark is None else int(marks.mark)
    if anew and marks.mark is None and pending:
        expected = pending[0].epoch - 1
    for seal in pending:
        expected += 1
        if seal.epoch != expected:
            raise ContradictoryState(
                f"epoch {expected} of query {query} has no seal, but epoch {seal.epoch} has: the state under "
                "_lakecommit is incomplete; nothing was committed; restore the missing seal from a backup"
            )


TRANSITIONS: Mapping[tuple[Phase, type], Callable[[Progress, Any], Progress]] = {
    (Phase.STARTING, Replayed): _replayed,
    (Phase.READY, Reported): _reported,
    (Phase.READY, Repeated): _repeated,
    (Phase.SEALING, Sealed): _sealed,
    (Phase.READY, MarksSeen): _marks_seen,
    (Phase.SEALING, MarksSeen): _marks_seen,
}
