"""Epochs that cannot be committed, given up so that their query goes on; the others of the query are committed.

A driver of the query that is at work meanwhile does no harm: whoever commits an epoch first has decided. So what is
deleted is only what no version names once the marks are past it. To do it again changes nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from lakecommit.clock import Clock
from lakecommit.committing.attempt import commit
from lakecommit.committing.table import TableCommitter
from lakecommit.epoch_ranges import listed
from lakecommit.errors import InvalidInput
from lakecommit.formats.base import TableState, Testify, marks_of
from lakecommit.formats.change import Change, Held, Kind
from lakecommit.model import Epoch, QueryId, Seal, own_mark_id
from lakecommit.progress.settings import TableSettings
from lakecommit.progress.table import ChangeTable, ReadTable, TableView
from lakecommit.recovering.passed import commit_passed
from lakecommit.releasing.objects import CleanStore, Deleted, delete, read_files, without_the_tables
from lakecommit.releasing.replaced import judge
from lakecommit.releasing.versions import OwnVersions
from lakecommit.state.stored import ReadState, list_manifests, seals_after
from lakecommit.storage.base import Get, Store


@dataclass(frozen=True, slots=True)
class GivenUp:
    """What it means to give up `epochs`: `lost` are those of their seals that the table does not hold, and will not;
    `others` are pending with rows, and are committed. `seals` are all of `epochs`."""

    query: QueryId
    epochs: frozenset[Epoch]
    seals: tuple[Seal, ...]
    lost: tuple[Seal, ...]
    others: tuple[Seal, ...]


async def survey_epochs(
    store: ReadState, table_format: ReadTable, table: TableState, query: QueryId, epochs: frozenset[Epoch]
) -> GivenUp:
    """What giving up `epochs` would do; `table` was read before. Raises `InvalidInput` if one has no seal."""
    marks = marks_of(table, query)
    sealed = [each.seal for each in await seals_after(store, query, None)]
    after = [seal for seal in sealed if marks.own is None or seal.epoch > marks.own]
    ran: frozenset[int] = frozenset()
    if marks.mark is not None and any(seal.epoch <= marks.mark for seal in after):
        # Of what another sink has run itself nothing is committed, and nothing is lost.
        ran = await table_format.marks_after(str(query), -1 if marks.own is None else int(marks.own)) or frozenset()
    pending = [seal for seal in after if seal.epoch not in ran]
    _refuse_unknown(query, epochs, sealed)
    replaced = await without_a_version(store, table_format, table, query, epochs)
    return GivenUp(
        query=query,
        epochs=epochs,
        seals=tuple(seal for seal in sealed if seal.epoch in epochs),
        lost=tuple(seal for seal in sealed if seal.epoch in replaced or (seal in pending and seal.epoch in epochs)),
        others=tuple(seal for seal in pending if seal.epoch not in epochs and seal.totals.epochs),
    )


async def give_up_epochs(
    store: Store,
    table_format: ChangeTable,
    found: GivenUp,
    *,
    clock: Clock,
    new_id: Callable[[], str],
    random: Callable[[], float],
    accepted_table_id: str | None,
) -> Deleted:
    """Commits versions that pass over the epochs, with the marks, and hold what else is pending. Those at or before the
    mark whose version somebody wrote over are held by one without files. Then deletes what is left of their files."""
    query, epochs = found.query, found.epochs
    await commit_passed(store, table_format, query, new_id, accepted_table_id, epochs)
    committer = TableCommitter(store, table_format, clock=clock, new_id=new_id, random=random)
    await committer.commit_pending(
        query,
        TableSettings(partition_columns=None, properties={}, accepted_table_id=accepted_table_id, given_up=epochs),
    )
    await settle(store, table_format, query, epochs, new_id)
    return await give_up(store, table_format, query, found.seals)


async def without_a_version(
    store: Get, table_format: ReadTable, table: TableState, query: QueryId, epochs: Collection[Epoch]
) -> list[Epoch]:
    """Those of `epochs` that are at or before the own mark, and that no version holds any more, as far as the log can
    tell."""
    own = marks_of(table, query).own
    reached = [epoch for epoch in epochs if own is not None and epoch <= own]
    found = await judge(store, table_format, OwnVersions(table_format, query), query, reached, table)
    return sorted([*found.unknown, *(each.epoch for each in found.lost)])


async def settle(
    store: Get,
    table_format: ChangeTable,
    query: QueryId,
    epochs: Collection[Epoch],
    new_id: Callable[[], str],
) -> int | None:
    """Commits a version that holds those of `epochs`, without files, that were in one that somebody wrote over.

    From then on nobody commits them again: who was about to is in conflict with it, and asks once more. Returns the
    version, None where there is nothing to settle.
    """
    view = TableView(table_format)
    await view.look()

    async def make() -> Change | None:
        table = view.state
        left = [] if table is None else await without_a_version(store, table_format, table, query, epochs)
        if table is None or not left:
            return None
        kept = [(name, table.mark(name)) for name in (str(query), own_mark_id(query))]
        return Change(
            id=new_id(),
            kind=Kind.APPEND_EPOCHS,
            kept_marks=tuple((name, mark) for name, mark in kept if mark is not None),
            holds=(Held(query, settled=tuple((epoch, epoch) for epoch in left), left_out=tuple(left)),),
        )

    landed = await commit(view, nullcontext(), make)
    return None if landed is None else landed.table.version


async def give_up(store: CleanStore, table_format: Testify, query: QueryId, epochs: Sequence[Seal]) -> Deleted:
    """Deletes what is left of the files of epochs that a version has passed over and left out.

    One of which the log has ever named a file is left alone: somebody else was first. Seals and manifests stay, too:
    they go with the next release, which sweeps once more behind attempts that had lost.
    """
    winners = {seal.epoch: {winner.attempt for winner in seal.winners if winner.manifests} for seal in epochs}
    named = (await table_format.ever_named([each for attempts in winners.values() for each in attempts])).attempts
    going = [epoch for epoch, attempts in winners.items() if named.isdisjoint(attempts)]
    manifests = await list_manifests(store, query)
    left = await read_files(store, [each for epoch in going for each in manifests.get(epoch, ())])
    return await delete(store, await without_the_tables(table_format, left), ())


def _refuse_unknown(query: QueryId, wanted: frozenset[Epoch], sealed: Sequence[Seal]) -> None:
    known = {seal.epoch for seal in sealed}
    if unknown := wanted - known:
        raise InvalidInput(
            f"epochs {listed(unknown)} of query {query} have no seal here; those that have: "
            f"{listed(known) or 'none'}; correct --epochs"
        )
