"""Taking a lease: how a reader makes sure that no vacuum deletes what it wants, or learns that one has.

    put      an object for the version, under a name that is new: whoever lists leases from here on sees it
    fence    list intents, delete each one: a vacuum that listed leases before finds its intent gone
    look     list cuts: one that was let stand before is seen; the lease holds unless it took something wanted
    replace  delete the objects that were put before

The order is what makes it safe, and each step is confirmed before the next. To renew a lease, to move it on and to go
on with it after a restart are the same: a late request can change neither what an object keeps nor when it was put.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from lakecommit.clock import Clock, Moment
from lakecommit.errors import AccessDenied, StoreError
from lakecommit.leases.judging import Holds, Loss, NotNow, Wanted, cuts_above, judge
from lakecommit.leases.removals import FindLoss
from lakecommit.leases.who import Who
from lakecommit.leases.written_once import create_anew
from lakecommit.state.lease_layout import CUTS, INTENTS, LeaseName
from lakecommit.storage.base import Create, Delete, Get, List
from lakecommit.storage.deleting import delete_confirmed
from lakecommit.storage.policy import DEFAULT_POLICY

LOOKING_MS = 10_000
_PAUSE_MS = 500


class TakeStore(Create, List, Get, Delete, Protocol):
    """The verbs that a lease takes; `Get` only to say who made a cut."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a lease is made of beside its id. `new_id` gives 32 new hexadecimal digits."""

    store: TakeStore
    losses: FindLoss
    who: Who
    new_id: Callable[[], str]
    clock: Clock
    random: Callable[[], float]


@dataclass(slots=True)
class Objects:
    """The objects of one lease that may be there, put by this process. Those of another one are left to it, if it lives
    still, and to their time."""

    lease: str
    ttl_s: int
    paths: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Taken:
    """The lease holds. `at` is a moment before its object was put."""

    at: Moment


async def take(parts: Parts, objects: Objects, version: int, wanted: Wanted) -> Taken | NotNow:
    """Takes the lease of `objects` for `version`, or says what stands against it after ten seconds of looking.

    On `NotNow` objects of before are there still. Raises `StoreError` if a step could not be confirmed: then nothing
    is known but what was known before, and all of it is to be done again.
    """
    at = Moment.of(parts.clock)
    try:
        path = await _put(parts, objects, version)
        await _fence(parts)
    except AccessDenied as error:
        raise AccessDenied(
            f"no lease can be taken: {error}. Let the reader write below _lakecommit/leases, and delete below "
            "_lakecommit; or read without a lease (leaseTtl=0), which no vacuum then waits for"
        ) from error
    found = await look(parts, version, wanted)
    if isinstance(found, NotNow):
        return found
    # One that is not confirmed is deleted with the next: meanwhile it keeps more than is needed.
    await drop(parts.store, objects, keep=path)
    return Taken(at)


async def look(parts: Parts, version: int, wanted: Wanted) -> Holds | NotNow:
    """Whether a lease of `version` holds that was put before, whether or not it has expired since.

    Looks again for ten seconds where it does not: that is how long a vacuum may take to withdraw its cut.
    """
    began_ms, seen_to = parts.clock.boot_ms(), version
    loss: Loss | None = None
    while True:
        listed_ms = parts.clock.boot_ms()
        above = cuts_above(version, [info.path async for page in parts.store.list(CUTS) for info in page])
        if loss is None and above.highest is not None and above.highest > seen_to:
            seen_to = above.highest
            loss = await parts.losses.first_loss(version, seen_to, wanted)
        found = judge(above, loss)
        # By a listing that began then: to find the loss may take longer, or a sleep.
        if isinstance(found, Holds) or listed_ms - began_ms >= LOOKING_MS:
            return found
        await parts.clock.sleep(_PAUSE_MS / 1000)


async def drop(store: Delete, objects: Objects, keep: str | None = None) -> bool:
    """Deletes the objects that may be there, but for `keep`. Whether all of them are gone for certain."""
    going = sorted(objects.paths - {keep})
    try:
        unconfirmed = frozenset(await store.delete(going)) if going else frozenset()
    except StoreError:
        return False
    objects.paths.difference_update(set(going) - unconfirmed)
    return not unconfirmed


async def _put(parts: Parts, objects: Objects, version: int) -> str:
    path = ""

    def path_of(unique: str) -> str:
        nonlocal path
        path = LeaseName(version, objects.ttl_s, objects.lease, unique).path
        # It may be there from here on, whatever comes back.
        objects.paths.add(path)
        return path

    body = parts.who.to_json()
    await create_anew(parts.store, path_of, body, new_id=parts.new_id, clock=parts.clock, random=parts.random)
    return path


async def _fence(parts: Parts) -> None:
    """After: every vacuum whose intent was there finds it gone. An intent that is not understood goes, too: to delete
    one only ever makes somebody look again."""
    left = [info.path async for page in parts.store.list(INTENTS) for info in page]
    await delete_confirmed(parts.store, left, DEFAULT_POLICY.backoff(parts.clock, parts.random))
