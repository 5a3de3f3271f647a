"""The guarded cut: how whoever deletes files of old versions makes sure that no lease wants them.

    intent   put, under a name of this run alone: a reader that takes a lease from here on deletes it
    leases   listed: H is the least of what was asked for and of what they keep
    cut      put: files that versions up to H removed may be gone
    look     the intent is still there: then no lease came in between that was not seen

A reader puts its lease, deletes the intents, then lists the cuts. Whichever way the two interleave, the vacuum has seen
the lease, or meets the loss of its intent, or has its cut seen by the reader. A run that is fenced, as the loss is
called, withdraws its cut and is tried again as another run. A cut that was let stand stays for good: whoever made it
may sleep before deleting, and a reader may wake up long after.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from lakecommit.clock import Clock
from lakecommit.errors import StoreError
from lakecommit.leases.listed import SeenLease, counting, list_leases, oldest_leased
from lakecommit.leases.who import Who
from lakecommit.leases.written_once import create_anew
from lakecommit.state.lease_layout import CLOCK, CUTS, CutName, clock_path, intent_path, parse_cut
from lakecommit.storage.base import Create, Delete, Get, List, Put
from lakecommit.storage.deleting import delete_confirmed

MOST_RUNS = 10


class CutStore(Create, Put, Get, List, Delete, Protocol):
    """The verbs that a guarded cut takes."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What versions up to `version` removed may be deleted. `kept_by` are the leases that hold it below what was asked
    for, and `dead` those that had expired. `run` names the cut and its intent."""

    version: int
    run: str
    kept_by: tuple[SeenLease, ...] = ()
    dead: tuple[SeenLease, ...] = ()


@dataclass(frozen=True, slots=True)
class NotWorthIt:
    """Nothing that may go was removed at `version` or before, which is as far as the leases let it go: there is no cut,
    and none is needed. The intent of `run` is there still."""

    version: int
    run: str
    kept_by: tuple[SeenLease, ...] = ()
    dead: tuple[SeenLease, ...] = ()


@dataclass(frozen=True, slots=True)
class Fenced:
    """Each time a reader took a lease in between. Nothing may be deleted, and no cut was left."""

    runs: int


async def store_now(store: CutStore, run: str) -> int:
    """What the store's clock says: the time of an object that `run` puts, and that `end_run` takes away."""
    path = clock_path(run)
    await store.put(path, b"{}")
    async for page in store.list(CLOCK):
        for info in page:
            if info.path == path:
                return info.modified_ms
    raise StoreError(f"{path} was put and is not listed; somebody has deleted it, so run it again")


def as_far_as(newest: int, leases: Collection[SeenLease]) -> int:
    """The version of a cut that was asked for at `newest`, where `leases` count. Pure."""
    oldest = oldest_leased(leases)
    return newest if oldest is None else min(newest, oldest)


async def guarded_cut(
    store: CutStore,
    newest: int,
    now_ms: int,
    *,
    who: Who,
    new_run: Callable[[], str],
    clock: Clock,
    random: Callable[[], float],
    worth: Callable[[int], bool] = lambda version: True,
    ignored: Collection[str] = (),
) -> Cut | NotWorthIt | Fenced:
    """A cut at `newest`, or as far below it as leases ask for.

    `now_ms` is what the store's clock said before the caller looked at anything: a lease that has expired by then
    counts no more. `new_run` gives 32 new hexadecimal digits. `worth` says whether anything would be deleted with a cut
    at a version. `ignored` are ids of leases that are cut off. Raises `UnsupportedTable` if a lease is not
    understood.
    """
    for _ in range(MOST_RUNS):
        run = await create_anew(store, intent_path, who.to_json(), new_id=new_run, clock=clock, random=random)
        leases = await list_leases(store)
        count = counting(leases, now_ms, ignored)
        version = as_far_as(newest, count)
        kept_by = tuple(each for each in count if each.name.version < newest)
        dead = tuple(each for each in leases if not each.counts(now_ms))
        if version < 0 or not worth(version):
            return NotWorthIt(version, run, kept_by, dead)
        cut = CutName(version, run).path
        try:
            await store.put(cut, who.to_json())
            unfenced = await store.get(intent_path(run)) is not None
        except (Exception, asyncio.CancelledError):
            # Nothing will be deleted by it, and a reader that came in between holds its lease.
            with contextlib.suppress(StoreError):
                await store.delete([cut])
            raise
        if unfenced:
            return Cut(version, run, kept_by, dead)
        # Readers would be told of losses that never happen.
        await delete_confirmed(store, [cut])
    return Fenced(MOST_RUNS)


async def end_run(store: CutStore, done: Cut | NotWorthIt, clock_run: str) -> None:
    """After all that was to go is gone, for certain: takes away what is needed no more.

    Cuts below an own one say nothing that it does not say, nor do others of its version; of these those go whose run
    comes before, so that of two that end together one stays. Leases go that were dead before the cut: each of their
    objects was put once, so that no renewal goes with them.
    """
    below: list[str] = []
    if isinstance(done, Cut):
        named = [parse_cut(info.path) async for page in store.list(CUTS) for info in page]
        own = (done.version, done.run)
        below = [each.path for each in named if each is not None and (each.version, each.run) < own]
    dead = [each.name.path for each in done.dead]
    await delete_confirmed(store, [*below, *dead, intent_path(done.run), clock_path(clock_run)])
