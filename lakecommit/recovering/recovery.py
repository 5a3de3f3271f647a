"""What a query left pending, brought to an end without Spark: committed, exported or discarded.

What follows the mark is committed as a restart would commit it. What another sink went past is told apart by the log:
an epoch that this sink ran itself has its rows in the table, and the sealed files have lost; any other is missing from
the table, and is committed under the own mark alone, since the mark is past it already.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lakecommit.clock import Clock
from lakecommit.commands import command
from lakecommit.committing.attempt import commit
from lakecommit.errors import ContradictoryState, CorruptState, InvalidInput
from lakecommit.formats.base import Open, TableState, Testify, WritePlan, marks_of
from lakecommit.formats.change import Change, Held, Kind
from lakecommit.listening.places import place_paths
from lakecommit.model import RELEASE_AGE_MS, DataFile, Epoch, Marks, Pending, QueryId, Seal, own_mark_id
from lakecommit.progress.table import ChangeTable, ReadTable, TableView
from lakecommit.releasing.batches import fence
from lakecommit.releasing.objects import CleanStore, Deleted, delete, last_written_ms, read_files, without_the_tables
from lakecommit.releasing.query import Cleaned, QueryCleaner, problem_of
from lakecommit.releasing.replaced import commit_again, judge
from lakecommit.releasing.versions import OwnVersions
from lakecommit.restarting.presence import check_present
from lakecommit.restarting.replay import passed_epochs
from lakecommit.state import codec, layout
from lakecommit.state.stored import ReadState, find_seal, list_manifests, list_sealed_epochs, read_pending, seals_after
from lakecommit.storage.base import Create, Delete, Get, GetRange
from lakecommit.storage.once import create_once

EXPORT_CHUNK_BYTES = 8 * 1024 * 1024
# In the place of a fingerprint of offsets: a repetition of the epoch by a real query has another one.
DISCARDED = "discarded"


class RecoverStore(ReadState, Delete, Protocol):
    """The verbs that recovery takes."""


class DiscardStore(CleanStore, Create, Protocol):
    """The verbs that discarding takes."""


@dataclass(frozen=True, slots=True)
class LeftOver:
    """What a query has sealed and lakecommit has not committed.

    `pending` follow the mark. `missing` are epochs that another sink went past without running them, `repeated` those
    that it ran itself: their rows are in the table, so that the sealed files have lost.
    """

    query: QueryId
    marks: Marks
    pending: tuple[Pending, ...]
    missing: tuple[Pending, ...]
    repeated: tuple[Pending, ...]

    def __bool__(self) -> bool:
        return bool(self.pending or self.missing or self.repeated)

    @property
    def to_commit(self) -> tuple[Pending, ...]:
        return (*self.missing, *self.pending)

    @property
    def newest_passed(self) -> Epoch | None:
        return max((each.epoch for each in (*self.missing, *self.repeated)), default=None)


async def left_over(store: RecoverStore, table_format: Testify, table: TableState | None, query: QueryId) -> LeftOver:
    """What there is to recover; `table` was read before. Raises what is wrong with the state of `query`."""
    marks = marks_of(table, query)
    after = [
        each for each in await seals_after(store, query, marks.own) if marks.own is None or each.seal.epoch > marks.own
    ]
    passed = await passed_epochs(store, table_format, query, marks, after)
    ran: frozenset[int] | None = frozenset()
    if passed:
        ran = await table_format.marks_after(str(query), -1 if marks.own is None else int(marks.own))
    if ran is None:
        verb = command("recover", table_format.location, "--query", query)
        raise ContradictoryState(
            f"another sink went past epochs {[each.epoch for each in passed][:20]} of query {query}, and the log no "
            "longer shows which of them it ran itself; nothing was committed; save their files "
            f"({verb} --export DIR), look for their rows in the table, then drop them ({verb} --discard)",
            entry="passed-by-another-sink",
        )
    pending = [each.seal for each in after if marks.mark is None or each.seal.epoch > marks.mark]
    return LeftOver(
        query=query,
        marks=marks,
        pending=tuple([await read_pending(store, seal) for seal in pending]),
        missing=tuple(each for each in passed if each.epoch not in ran),
        repeated=tuple(each for each in passed if each.epoch in ran),
    )


async def commit_passed(
    store: RecoverStore,
    table_format: ChangeTable,
    query: QueryId,
    new_id: Callable[[], str],
    accepted_table_id: str | None = None,
    given_up: Collection[Epoch] = (),
) -> int | None:
    """Commits the epochs that another sink went past and did not run; returns the version, None where there is none.

    The files of those that it did run are deleted first, while their manifests still name them; those of `given_up` are
    left out. Raises where a file is gone, since the sink that went past may also have vacuumed, or where the epochs no
    longer fit the table.
    """
    view = TableView(table_format)
    await view.look()

    async def make() -> Change | None:
        table = view.state
        found = await left_over(store, table_format, table, query)
        newest = found.newest_passed
        if table is None or newest is None:
            return None
        missing = [each for each in found.missing if each.epoch not in given_up]
        for plan in {each.plan for each in missing if each.plan is not None}:
            table_format.check(table, WritePlan.from_json(plan), accepted_table_id)
        await check_present(store, table_format.location, missing)
        lost = [file.path for each in found.repeated for file in each.files]
        if lost and await store.delete(lost):
            raise ContradictoryState(
                f"some files of epochs of query {query} that had lost are not deleted yet; try again"
            )
        first = Epoch(0 if found.marks.own is None else found.marks.own + 1)
        recovered = tuple(each.epoch for each in missing)
        return Change(
            id=new_id(),
            kind=Kind.APPEND_EPOCHS,
            adds=tuple(file for each in missing for file in each.files),
            marks=((own_mark_id(query), newest),),
            holds=(Held(query, settled=((first, newest),), recovered=recovered),),
        )

    landed = await commit(view, nullcontext(), make)
    return None if landed is None else landed.table.version


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


async def replaced_epochs(
    store: RecoverStore, table_format: ReadTable, table: TableState, query: QueryId, clock: Clock
) -> tuple[QueryCleaner, Sequence[Epoch]]:
    """The epochs whose version somebody wrote over, and who looked for them. `table` was read before."""
    cleaner = QueryCleaner(store, table_format, query, clock)
    found = await cleaner.survey(table, ask_all=True)
    for problem in problem_of(found):
        raise ContradictoryState(problem)
    return cleaner, found.replaced


async def commit_replaced(
    store: RecoverStore,
    table_format: ChangeTable,
    query: QueryId,
    *,
    clock: Clock,
    new_id: Callable[[], str],
    accepted_table_id: str | None = None,
) -> list[int]:
    """Commits again what was in versions that somebody wrote over; returns the versions that hold it now."""
    view = TableView(table_format)
    await view.look()
    if view.state is None:
        return []
    cleaner, left = await replaced_epochs(store, table_format, view.state, query, clock)
    versions: list[int] = []
    while left:
        again = await commit_again(
            store,
            table_format,
            view,
            nullcontext(),
            cleaner.versions,
            query,
            left,
            clock=clock,
            new_id=new_id,
            accepted_table_id=accepted_table_id,
        )
        if not again:
            break
        versions.append(view.known.version)
        left = [epoch for epoch in left if epoch not in again]
    return versions


async def discard(
    store: DiscardStore, table_format: ChangeTable, query: QueryId, *, clock: Clock, new_id: Callable[[], str]
) -> Cleaned:
    """Gives up what a query has staged: deletes its files and its state but for the newest seal, behind a fence.

    Epochs that were begun and never sealed are sealed first, without winners and with an offset that no source has: a
    driver that only sleeps finds that its attempts have lost, and one that is started again is refused. The fence moves
    both marks past all of them. Files that the log names stay. Raises `InvalidInput` where the query has written so
    recently that an upload may still be under way.
    """
    sealed = await list_sealed_epochs(store, query)
    manifests = await list_manifests(store, query)
    newest = max([*sealed, *manifests], default=None)
    if newest is None:
        return Cleaned()
    age_ms = clock.wall_ms() - await last_written_ms(store, query)
    if age_ms <= RELEASE_AGE_MS:
        raise InvalidInput(
            f"query {query} has written {age_ms // 60_000} minutes ago and may still be running; stop it and try again "
            f"when {RELEASE_AGE_MS // 60_000} minutes have passed"
        )
    await _seal_what_is_open(store, table_format, query, newest, clock)
    await fence(table_format, [(str(query), newest), (own_mark_id(query), newest)], new_id)
    sealed = await list_sealed_epochs(store, query)
    named = [each for group in manifests.values() for each in group]
    lost = await without_the_tables(table_format, await read_files(store, named))
    deleted = await delete(store, lost, [each for each in named if each not in lost.damaged])
    seals = [] if deleted.unconfirmed or lost.damaged else sealed[:-1]
    if sealed and not await _is_readable(store, query, sealed[-1]):
        # It is no evidence of anything, and would be in the way for good.
        seals = sealed
    left = await store.delete([layout.seal_path(query, epoch) for epoch in seals]) if seals else ()
    # Nobody will be told of what is given up, nor of anything that came before it.
    places = await place_paths(store, query)
    places_left = await store.delete(places) if places else ()
    unconfirmed = deleted.unconfirmed + len(left) + len(places_left)
    return Cleaned(deleted.files, deleted.manifests, len(seals) - len(left), unconfirmed)


async def _seal_what_is_open(
    store: DiscardStore, table_format: Open, query: QueryId, newest: Epoch, clock: Clock
) -> None:
    """Seals every epoch up to `newest` that has no seal and follows the mark; what somebody else seals is theirs."""
    table = await table_format.open()
    marks = marks_of(table, query)
    sealed = await list_sealed_epochs(store, query)
    first = max([-1, *sealed, *(epoch for epoch in (marks.mark, marks.own) if epoch is not None)]) + 1
    for epoch in map(Epoch, range(first, newest + 1)):
        known = sealed and await _is_readable(store, query, sealed[-1])
        link = await find_seal(store, query, sealed[-1]) if known else None
        seal = Seal(
            query=query,
            epoch=epoch,
            winners=(),
            previous=None if link is None else link.digest,
            table_id="" if table is None else table.table_id,
            fingerprint=DISCARDED,
            sealed_ms=clock.wall_ms(),
        )
        body = codec.encode_seal(seal)
        await create_once(store, layout.seal_path(query, epoch), body, clock=clock, random=lambda: 0.5)
        sealed.append(epoch)


async def _is_readable(store: Get, query: QueryId, epoch: Epoch) -> bool:
    try:
        return await find_seal(store, query, epoch) is not None
    except CorruptState:
        return False


async def export(
    store: GetRange, files: Sequence[DataFile], directory: Path, progress: Callable[[DataFile], None]
) -> list[DataFile]:
    """Copies data files to `directory`, each below the path that it has in the table; returns those that are gone.

    One that is shorter than its manifest says is copied as it is.
    """
    missing: list[DataFile] = []
    for file in files:
        target = directory / file.path
        if await store.size(file.path) is None:
            missing.append(file)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            aside = target.with_name(f"{target.name}.part")
            with aside.open("wb") as body:
                for start in range(0, file.size_bytes, EXPORT_CHUNK_BYTES):
                    length = min(EXPORT_CHUNK_BYTES, file.size_bytes - start)
                    body.write(await store.get_range(file.path, start, length))
            os.replace(aside, target)
        progress(file)
    return missing
