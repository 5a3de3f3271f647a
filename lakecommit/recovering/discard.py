"""All that a query has staged, given up: for a query that is gone for good."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from lakecommit.clock import Clock
from lakecommit.errors import CorruptState, InvalidInput
from lakecommit.formats.base import Open, marks_of
from lakecommit.listening.places import place_paths
from lakecommit.model import RELEASE_AGE_MS, Epoch, QueryId, Seal, own_mark_id
from lakecommit.progress.table import ChangeTable, ReadTable, TableView
from lakecommit.releasing.batches import fence
from lakecommit.releasing.objects import (
    CleanStore,
    NamedFiles,
    delete,
    last_written_ms,
    read_files,
    without_the_tables,
)
from lakecommit.releasing.query import Cleaned
from lakecommit.restarting.filling import fill_with_nothing
from lakecommit.state import codec, layout
from lakecommit.state.stored import find_seal, list_manifests, list_sealed_epochs
from lakecommit.storage.base import Create, Get
from lakecommit.storage.once import create_once

# In the place of a fingerprint of offsets: a repetition of the epoch by a real query has another one.
DISCARDED = "discarded"


class DiscardStore(CleanStore, Create, Protocol):
    """The verbs that discarding takes."""


@dataclass(frozen=True, slots=True)
class Discarding:
    """What giving up a query would drop: `epochs` that are not in the table, the files that the log does not name, and
    how many manifests and seals.

    `young_ms` is when it last wrote a manifest, None where that is long ago. Where it is not, nothing else is known:
    nobody may discard it.
    """

    epochs: tuple[Epoch, ...] = ()
    lost: NamedFiles = field(default_factory=NamedFiles)
    manifests: int = 0
    seals: int = 0
    young_ms: int | None = None


async def survey_discard(store: CleanStore, table_format: ReadTable, query: QueryId, now_ms: int) -> Discarding:
    """Changes nothing."""
    sealed = await list_sealed_epochs(store, query)
    by_epoch = await list_manifests(store, query)
    manifests = [named for group in by_epoch.values() for named in group]
    if young := [named.modified_ms for named in manifests if not named.is_old(now_ms)]:
        return Discarding(young_ms=max(young))
    lost = await without_the_tables(table_format, await read_files(store, manifests))
    marks = marks_of(await table_format.open(), query)
    # An epoch that was begun and never sealed gets a seal of its own, which is then the newest.
    newest = max([*sealed, *by_epoch], default=None)
    return Discarding(
        epochs=tuple(sorted(epoch for epoch in {*sealed, *by_epoch} if marks.own is None or epoch > marks.own)),
        lost=lost,
        manifests=len(manifests) - len(lost.damaged),
        seals=0 if lost.damaged else sum(epoch != newest for epoch in sealed),
    )


async def discard(
    store: DiscardStore, table_format: ChangeTable, query: QueryId, *, clock: Clock, new_id: Callable[[], str]
) -> Cleaned:
    """Gives up what a query has staged: deletes its files and its state but for the newest seal, behind a fence.

    Epochs that were begun and never sealed are sealed first, without winners and with an offset that no source has: a
    driver that only sleeps finds that its attempts have lost, and one that is started again is refused. The fence moves
    both marks past all of them. What another sink went past is made up for with nothing where nobody can read the table
    until then. Files that the log names stay. Raises `InvalidInput` if the query has written so
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
    await fill_with_nothing(table_format, TableView(table_format), query)
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
