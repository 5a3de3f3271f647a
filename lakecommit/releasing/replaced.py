"""Epochs whose version somebody wrote over, committed again from their seals: once, whoever does it.

Precondition of a second commit: the log was read up to its newest version, and names no file of the epoch. The version
after that is created if absent, so that nobody can have come in between; after a conflict all is asked again. It sets
the marks once more that are reached already: so whatever version holds an epoch has a mark that covers it, and an epoch
after the mark is in none, whichever versions are written over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace

from lakecommit.clock import Clock
from lakecommit.committing.attempt import commit
from lakecommit.committing.replacing import ReplacedTable
from lakecommit.concurrency.parallel import in_parallel
from lakecommit.errors import ContradictoryState
from lakecommit.formats.base import Located, Open, TableState, Testify, marks_of
from lakecommit.formats.change import Change, Held, Kind, Selection
from lakecommit.formats.evidence import Holding
from lakecommit.formats.plan import WritePlan
from lakecommit.model import DataFile, Epoch, Pending, QueryId, Seal, own_mark_id
from lakecommit.progress.table import ChangeTable, ReadTable, TableView
from lakecommit.releasing.versions import OwnVersions, Whereabouts, held_by
from lakecommit.restarting.presence import check_present, is_endangered, vacuum_under_way
from lakecommit.state.stored import ManifestMissing, ReadState, find_seal, read_pending
from lakecommit.storage.base import Get

# A version takes as many epochs as have no more files than this, or one.
FILES_PER_VERSION = 10_000
LONG_AGO_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class EpochPresence:
    """`held` are epochs that are in the table, with the time of the version that shows it, 0 where it is long ago.
    `rewritten` says that the marks in `table` are not in the log any more.

    `lost` were in a version that somebody wrote over, with the files that the log does not name. Those of them in
    `replacing` had replaced the table. Of those in `unknown` it cannot tell any more.
    """

    held: Mapping[Epoch, int]
    lost: tuple[Pending, ...] = ()
    unknown: tuple[Epoch, ...] = ()
    rewritten: bool = False
    replacing: frozenset[Epoch] = frozenset()


async def judge(
    store: Get,
    table_format: ReadTable,
    versions: OwnVersions,
    query: QueryId,
    done: Collection[Epoch],
    table: TableState,
) -> EpochPresence:
    """Whether epochs that are sealed, and at or before the own mark of `table`, are in the table.

    One listing where nothing is out of the ordinary. An epoch that no version of the log holds may be in a checkpoint,
    or was compacted by somebody, so that the log is asked for its files.
    """
    found = await versions.find(done, table.version)
    if not found.missing:
        return EpochPresence(found.since_ms)
    return await _judge_missing(store, table_format, versions, query, found, table)


async def _judge_missing(
    store: Get,
    table_format: ReadTable,
    versions: OwnVersions,
    query: QueryId,
    found: Whereabouts,
    table: TableState,
) -> EpochPresence:
    missing = sorted(found.missing)
    stored = await in_parallel(lambda epoch: find_seal(store, query, epoch), missing)
    # One whose seal has gone meanwhile was released by somebody who asked the same.
    seals = [each.seal for each in stored if each is not None and each.seal.totals.epochs]
    # What the next one has replaced the log names, too. Where versions are gone, that is all that it can say.
    replacing = frozenset(seal.epoch for seal in seals if seal.replaces and found.decided)
    pending = await _read_pending(store, table_format, seals)
    paths = [file.path for each in pending if each.epoch not in replacing for file in each.files]
    named = await table_format.ever_named_files(paths)
    # Others may have compacted some of its files before its version was written over.
    left = [replace(each, files=tuple(file for file in each.files if file.path not in named)) for each in pending]
    lost = tuple(each for each in left if each.files or each.epoch in replacing)
    epochs = {each.epoch for each in lost}
    # The mark may have gone back with a version: then epochs after it are pending again, also those without rows.
    own = await _own_mark_now(table_format, query) if max(missing) > found.own else max(missing)
    held = [epoch for epoch in missing if epoch not in epochs and epoch <= own]
    since_ms = await _since(table_format, table, query, found, held) if held else {}
    seen = {epoch: versions.first_seen(epoch, since_ms[epoch]) for epoch in held}
    rewritten = own < max(missing)
    if found.decided:
        return EpochPresence({**found.since_ms, **seen}, lost, rewritten=rewritten, replacing=replacing)
    sealed_ms = {seal.epoch: seal.sealed_ms for seal in seals if seal.epoch in epochs}
    old = await _marked_long_ago(table_format, table, query, sealed_ms)
    unknown = tuple(sorted(epochs - old))
    return EpochPresence({**found.since_ms, **seen, **versions.take_for_held(old)}, (), unknown, rewritten)


async def _marked_long_ago(
    table_format: Testify, table: TableState, query: QueryId, sealed_ms: Mapping[Epoch, int]
) -> frozenset[Epoch]:
    """Those of the epochs that the log has no trace of, although its oldest checkpoint has a mark that covers them.

    Their versions were there before the log begins, and the query wrote nothing for so long that the log was cleaned up
    past them: others have compacted the files since, and the tombstones have expired. A version that was written over
    is made up for within minutes, so that a day after the seal there is nothing to wait for. The files stay.
    """
    newest_ms = max((tag.modified_ms for tag in await table_format.tags(table.version)), default=0)
    old = [epoch for epoch, at_ms in sealed_ms.items() if newest_ms - at_ms > LONG_AGO_MS]
    mark = await table_format.oldest_mark(own_mark_id(query)) if old else None
    return frozenset(epoch for epoch in old if mark is not None and epoch <= mark)


async def _own_mark_now(table_format: Open, query: QueryId) -> int:
    own = marks_of(await table_format.open(), query).own
    return -1 if own is None else own


async def _since(
    table_format: Testify, table: TableState, query: QueryId, found: Whereabouts, epochs: Sequence[Epoch]
) -> Mapping[Epoch, int]:
    """When those were written, at the latest, that the log names and no version of ours holds up to that of `table`.

    Long ago where versions of then were not read, unless a newer one holds them: they were just committed again.
    """
    tags = await table_format.tags(table.version)
    if found.decided:
        return dict.fromkeys(epochs, max((tag.modified_ms for tag in tags), default=0))
    newer = [tag for tag in tags if tag.version > table.version]
    holdings = await in_parallel(lambda tag: table_format.holding(tag.version, query), newer)
    since_ms = dict.fromkeys(epochs, 0)
    for tag, holding in zip(newer, holdings, strict=True):
        # Of a version that is gone already nobody knows what it held.
        for epoch in epochs if holding is None else held_by([holding], frozenset(epochs)):
            since_ms[epoch] = tag.modified_ms
    return since_ms


async def _read_pending(store: Get, table_format: Testify, seals: Sequence[Seal]) -> list[Pending]:
    """The files of the winners. Manifests go when an epoch is released, which may have been broken off: then the log
    names its attempts. Raises `ManifestMissing` if it does not."""
    pending: list[Pending] = []
    for seal in seals:
        try:
            pending.append(await read_pending(store, seal))
        except ManifestMissing:
            attempts = [winner.attempt for winner in seal.winners if winner.manifests]
            if not (await table_format.ever_named(attempts)).attempts:
                raise
    return pending


async def commit_again(
    store: ReadState,
    table_format: ChangeTable,
    view: TableView,
    turn: AbstractAsyncContextManager[object],
    versions: OwnVersions,
    query: QueryId,
    epochs: Collection[Epoch],
    *,
    clock: Clock,
    new_id: Callable[[], str],
    accepted_table_id: str | None = None,
    seen: Callable[[], None] = lambda: None,
) -> Sequence[Epoch]:
    """Commits those of `epochs` that the table does not hold, as many as fit one version; returns them.

    `view` was read anew just before: who noticed that versions were written over knows no longer what is in them.
    Raises what is in the way: the epochs do not fit the table any more, or files are gone.
    """
    again: list[Epoch] = []
    replaced = ReplacedTable(view, table_format)

    async def make() -> Change | None:
        again.clear()
        table, own = view.state, view.marks(query).own
        if table is None or own is None:
            return None
        presence = await judge(store, table_format, versions, query, [each for each in epochs if each <= own], table)
        pending = _as_many_as_fit(presence.lost)
        if not pending:
            return None
        again.extend(each.epoch for each in pending)
        if presence.replacing:
            pending = [await _newest(store, table_format, versions, query, own, sorted(presence.replacing))]
            again[:] = sorted({*presence.replacing, pending[0].epoch})
        for plan in {each.plan for each in pending if each.plan is not None}:
            table_format.check(table, WritePlan.from_json(plan), accepted_table_id)
        await check_present(store, table_format.location, pending)
        await view.see_vacuums(pending)
        for each in pending:
            if is_endangered(each, view.known.vacuums, clock.wall_ms()):
                raise vacuum_under_way(table_format.location, query, each.epoch)
        adds = tuple(file for each in pending for file in each.files)
        removes = await replaced.select(adds) if presence.replacing else None
        return _change(new_id(), view.known, query, adds, again, removes)

    try:
        landed = await commit(view, turn, make, seen)
    finally:
        replaced.close()
    if landed is not None:
        runs = Held(query, again=tuple(again)).runs
        versions.note(landed.table.version, Holding(landed.table.etag, runs, landed.table.mark(own_mark_id(query))))
    return again


async def _newest(
    store: Get, table_format: Located, versions: OwnVersions, query: QueryId, own: Epoch, replacing: Sequence[Epoch]
) -> Pending:
    """The epoch that the table should hold, and nothing else: the newest that was not given up, where a version is gone
    that had replaced what was there before. Raises `ContradictoryState` if rows were appended since then."""
    left = (Epoch(epoch) for epoch in range(own, -1, -1) if not versions.gave_up(Epoch(epoch)))
    newest = next(left, None)
    stored = None if newest is None else await find_seal(store, query, newest)
    if stored is None or not stored.seal.replaces:
        raise ContradictoryState(
            f"epochs {replacing[:20]} of query {query} replaced {table_format.location}, and other writers have "
            "written over versions of them; epochs since then were appended, so that what belongs into the table "
            'cannot be told: run the query with outputMode("complete") again, or restore the table'
        )
    return await read_pending(store, stored.seal)


def _change(
    change_id: str,
    table: TableState,
    query: QueryId,
    adds: Sequence[DataFile],
    again: Sequence[Epoch],
    removes: Selection | None,
) -> Change:
    there = frozenset(() if removes is None else removes.kept)
    kept = [(name, table.mark(name)) for name in (str(query), own_mark_id(query))]
    return Change(
        id=change_id,
        kind=Kind.APPEND_EPOCHS if removes is None else Kind.REPLACE_EPOCH,
        adds=tuple(file for file in adds if file.path not in there),
        kept_marks=tuple((name, mark) for name, mark in kept if mark is not None),
        holds=(Held(query, again=tuple(again)),),
        removes=removes,
    )


def _as_many_as_fit(lost: Sequence[Pending]) -> list[Pending]:
    taken: list[Pending] = []
    room = FILES_PER_VERSION
    for each in lost:
        if taken and len(each.files) > room:
            break
        taken.append(each)
        room -= len(each.files)
    return taken
