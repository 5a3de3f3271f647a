"""What a table's writers have under way: marks, seals, pending epochs, staged files. Reads only.

Order of reads: the caller has opened the table, which gives the marks; then seals, then manifests. A snapshot that
lands in between can only make an epoch look pending that is done. The table itself is never listed, and of the state
only what lies after the marks, so the cost depends on what is under way.

How much a sealed epoch adds is in its seal. Manifests are read for the rest: epochs without a seal, and what the
attempts that lost have left in the first few pending ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lakecommit.concurrency.parallel import in_parallel
from lakecommit.errors import LakecommitError
from lakecommit.formats.base import TableState, marks_of
from lakecommit.model import Epoch, Marks, QueryId, Seal, Totals, own_mark_id
from lakecommit.progress.backlog import Backlog
from lakecommit.progress.standing import Standing, standing_of
from lakecommit.state import codec
from lakecommit.state.stored import (
    NamedManifest,
    ReadState,
    list_epochs_after,
    list_manifests,
    read_seal,
    stored_queries,
)
from lakecommit.storage.base import Found, Get

# Of how many sealed epochs of a query the manifests are read.
DETAILED_EPOCHS = 20

# A seal, or what is wrong with it.
SealOrProblem = Seal | str


@dataclass(frozen=True, slots=True)
class StagedEpoch:
    """An epoch with files that no snapshot of lakecommit holds: it is PASSED, PENDING or OPEN.

    Of a sealed epoch, the figures are those of the winners, as its seal has them; of an OPEN one they are those of all
    attempts. `lost_files` counts the files of attempts that the seal does not name. Where the manifests of a sealed
    epoch were not read, `attempts` is None and `lost_files` is 0. `written_ms` is when the newest manifest of an OPEN
    epoch was stored. `problem` says why the figures are not complete, or the epoch cannot be committed.
    """

    epoch: Epoch
    standing: Standing
    sealed_ms: int | None
    attempts: int | None
    files: int
    rows: int
    size_bytes: int
    lost_files: int = 0
    problem: str | None = None
    written_ms: int | None = None


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """One query. `staged` are its epochs in order; of those that are sealed, the ones with rows.

    `newest` is the newest seal, None where there is none or where it cannot be read; `problem` says why, where the
    epoch is not among those that follow. A query without marks and seals is either a batch write or a stream that has
    not sealed anything yet. `snapshot_ms` is when lakecommit last committed something of a query, `name` the one that
    the query had then, where it had one.
    """

    id: QueryId
    marks: Marks
    newest_seal: Epoch | None
    newest: Seal | None
    staged: tuple[StagedEpoch, ...] = ()
    problem: str | None = None
    snapshot_ms: int | None = None
    name: str | None = None

    @property
    def sealed_ms(self) -> int | None:
        """When the newest seal was made."""
        return None if self.newest is None else self.newest.sealed_ms

    @property
    def active_ms(self) -> int | None:
        """The last sign of life: a manifest of an epoch that is open, a seal or a snapshot."""
        signs = (self.sealed_ms, self.snapshot_ms, *(each.written_ms for each in self.open))
        return max((sign for sign in signs if sign is not None), default=None)

    @property
    def passed(self) -> tuple[StagedEpoch, ...]:
        return self._that_are(Standing.PASSED)

    @property
    def pending(self) -> tuple[StagedEpoch, ...]:
        return self._that_are(Standing.PENDING)

    @property
    def open(self) -> tuple[StagedEpoch, ...]:
        return self._that_are(Standing.OPEN)

    @property
    def never_sealed(self) -> bool:
        return self.newest_seal is None and self.marks == Marks()

    @property
    def load(self) -> Totals:
        """How much is pending."""
        return sum((Totals(1, each.files, each.rows, each.size_bytes) for each in self.pending), Totals())

    @property
    def partitions_behind(self) -> int | None:
        """How many partitions of the sources are short of their backlog boundary, after the newest sealed epoch.

        0 is the normal cadence; None where nothing is known.
        """
        return None if self.newest is None else len(Backlog.from_json(self.newest.backlog).boundaries)

    @property
    def watermark_us(self) -> int | None:
        """Microseconds since the Unix epoch, after the newest sealed epoch."""
        return None if self.newest is None else self.newest.watermark_us

    def lag_ms(self, now_ms: int) -> int | None:
        """For how long the oldest pending epoch has been sealed; None where nothing is pending."""
        sealed_ms = next((each.sealed_ms for each in self.pending if each.sealed_ms is not None), None)
        return None if sealed_ms is None else max(0, now_ms - sealed_ms)

    def _that_are(self, standing: Standing) -> tuple[StagedEpoch, ...]:
        return tuple(each for each in self.staged if each.standing is standing)


async def queries_of(store: ReadState, table: TableState | None) -> list[QueryStatus]:
    """Every query that has state below the table, ordered by name. `table` is None where there is no table."""
    return [
        replace(await query_status(store, query, marks_of(table, query)), snapshot_ms=snapshot_ms_of(table, query))
        async for query in stored_queries(store)
    ]


def snapshot_ms_of(table: TableState | None, query: QueryId) -> int | None:
    """When lakecommit last committed something of `query`, None where it never did."""
    return None if table is None else table.mark_set_ms(own_mark_id(query))


async def query_status(store: ReadState, query: QueryId, marks: Marks) -> QueryStatus:
    """What `query` has under way after `marks`. Damaged or missing records are reported, not raised.

    Cost: two listings, or three where more than `DETAILED_EPOCHS` are pending; a GET for each seal after the own mark,
    or for the newest one where there is none; a GET for each manifest of epochs without a seal and of the first
    `DETAILED_EPOCHS` pending ones. With nothing under way that is two listings and one GET.
    """
    seals = await read_seals(store, query, await list_epochs_after(store, query, marks.own))
    status = status_of(query, marks, seals)
    sealed = status.staged
    detailed = sealed[:DETAILED_EPOCHS]
    if len(sealed) > len(detailed):
        named = await list_manifests(store, query, marks.own, detailed[-1].epoch)
        named |= await list_manifests(store, query, status.newest_seal)
    else:
        named = await list_manifests(store, query, marks.own)
    known = {
        each.epoch: await _detailed(store, each, seals[each.epoch], named.get(each.epoch, ())) for each in detailed
    }
    unsealed = [epoch for epoch in sorted(named) if epoch not in seals]
    begun = [epoch for epoch in unsealed if _standing(epoch, marks, sealed=False) is Standing.OPEN]
    in_work = [await _open_epoch(store, epoch, named[epoch]) for epoch in begun]
    return replace(status, staged=(*(known.get(each.epoch, each) for each in sealed), *in_work))


def status_of(query: QueryId, marks: Marks, seals: Mapping[Epoch, SealOrProblem]) -> QueryStatus:
    """What marks and seals alone tell. `seals` are those after the own mark, in order, or else the newest one."""
    newest_seal = max(seals, default=None)
    newest = None if newest_seal is None else seals[newest_seal]
    after = [(epoch, seal) for epoch, seal in seals.items() if marks.own is None or epoch > marks.own]
    # A sealed epoch without rows needs no snapshot of its own: the next one's mark covers it.
    staged = [(epoch, seal) for epoch, seal in after if isinstance(seal, str) or seal.totals.epochs]
    return QueryStatus(
        id=query,
        marks=marks,
        newest_seal=newest_seal,
        newest=newest if isinstance(newest, Seal) else None,
        staged=tuple(_sealed_epoch(epoch, _standing(epoch, marks, sealed=True), seal) for epoch, seal in staged),
        problem=newest if isinstance(newest, str) and not after else None,
    )


async def read_seals(store: Get, query: QueryId, epochs: Iterable[Epoch]) -> dict[Epoch, SealOrProblem]:
    """The seals of `epochs`, in their order."""

    async def read(epoch: Epoch) -> SealOrProblem:
        try:
            return (await read_seal(store, query, epoch)).seal
        except LakecommitError as error:
            return str(error)

    epochs = list(epochs)
    return dict(zip(epochs, await in_parallel(read, epochs), strict=True))


def _standing(epoch: Epoch, marks: Marks, *, sealed: bool) -> Standing:
    """Of an epoch after the own mark. Its seal is taken for chained: who commits it checks that."""
    return standing_of(epoch, marks, sealed=sealed, chained=True)


def _sealed_epoch(epoch: Epoch, standing: Standing, seal: SealOrProblem) -> StagedEpoch:
    if isinstance(seal, str):
        return StagedEpoch(epoch, standing, None, None, 0, 0, 0, problem=seal)
    totals = seal.totals
    return StagedEpoch(epoch, standing, seal.sealed_ms, None, totals.files, totals.rows, totals.size_bytes)


async def _detailed(
    store: Get, epoch: StagedEpoch, seal: SealOrProblem, manifests: Sequence[NamedManifest]
) -> StagedEpoch:
    """Adds what the manifests tell. Those that the seal names and nobody can read are a problem."""
    if isinstance(seal, str):
        return replace(epoch, attempts=_attempts(manifests))
    winners = {(winner.task, winner.attempt): winner.manifests for winner in seal.winners}
    lost_files = 0
    problems = []
    for named, counted in zip(manifests, await _count(store, manifests), strict=True):
        wins = named.number < winners.get((named.attempt.task, named.attempt.id), 0)
        if wins and isinstance(counted, str):
            problems.append(counted)
        elif not wins and isinstance(counted, Totals):
            lost_files += counted.files
    problems += _missing(seal, manifests)
    return replace(epoch, attempts=_attempts(manifests), lost_files=lost_files, problem="; ".join(problems) or None)


async def _open_epoch(store: Get, epoch: Epoch, manifests: Sequence[NamedManifest]) -> StagedEpoch:
    counted = await _count(store, manifests)
    totals = sum((each for each in counted if isinstance(each, Totals)), Totals())
    problem = "; ".join(each for each in counted if isinstance(each, str)) or None
    figures = (totals.files, totals.rows, totals.size_bytes)
    written_ms = max(named.modified_ms for named in manifests)
    return StagedEpoch(
        epoch, Standing.OPEN, None, _attempts(manifests), *figures, problem=problem, written_ms=written_ms
    )


async def _count(store: Get, manifests: Sequence[NamedManifest]) -> list[Totals | str]:
    """How much each manifest names, or what is wrong with it."""

    async def count(named: NamedManifest) -> Totals | str:
        path = named.path
        try:
            found = await store.get(path)
            if not isinstance(found, Found):
                return f"manifest {path} went away while it was looked at; look again"
            return Totals.of(codec.decode_manifest(found.body, path).files)
        except LakecommitError as error:
            return str(error)

    return await in_parallel(count, manifests)


def _attempts(manifests: Iterable[NamedManifest]) -> int:
    return len({named.attempt.id for named in manifests})


def _missing(seal: Seal, manifests: Iterable[NamedManifest]) -> list[str]:
    there = {(named.attempt.task, named.attempt.id, named.number) for named in manifests}
    named = ((winner.task, winner.attempt, number) for winner in seal.winners for number in range(winner.manifests))
    missing = sum(each not in there for each in named)
    if not missing:
        return []
    return [f"{missing} manifests that the seal of epoch {seal.epoch} names are missing; restore them from a backup"]
