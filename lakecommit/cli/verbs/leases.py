"""`lakecommit leases TABLE`: who reads which version, until when, and what that keeps from being deleted."""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Group as Shown
from rich.console import RenderableType

from lakecommit.cli.arguments import json_option, run, store_option
from lakecommit.cli.hints import hint
from lakecommit.cli.output import duration, second, show, size, table, text, time
from lakecommit.cli.tables import table_at
from lakecommit.clock import Clock, SystemClock
from lakecommit.concurrency.parallel import in_parallel
from lakecommit.errors import ContradictoryState, CorruptState, InvalidInput, LocalDiskFailed
from lakecommit.formats.registry import NAMES, has_log
from lakecommit.leases.held import Held, HeldLease, Standing, held
from lakecommit.leases.who import this_process, who_of
from lakecommit.state.lease_layout import LEASES
from lakecommit.storage.base import Found, Store
from lakecommit.storage.deleting import delete_confirmed
from lakecommit.storage.location import open_store
from lakecommit.vacuuming.asked import Asked
from lakecommit.vacuuming.candidates import Group
from lakecommit.vacuuming.vacuum import Means, TableVacuum

HOLDERS_READ = 100


@dataclass(frozen=True, slots=True)
class LeasesOutput:
    """`keeps` has the files that a vacuum would delete were it not for a lease, by id; `unknown_keeps` says why that is
    not known, where it is not. `released` are the objects that went, None where that was not to be done."""

    location: str
    found: Held
    own_ms: int
    holders: Mapping[str, str]
    keeps: Mapping[str, Group]
    unknown_keeps: str | None = None
    asked: str | None = None
    released: int | None = None

    def data(self) -> dict[str, Any]:
        return {
            "location": self.location,
            "leases": [self._lease_data(each) for each in self.found.leases],
            "notUnderstood": list(self.found.unknown),
            "keepsUnknown": self.unknown_keeps,
            "release": self.asked,
            "released": self.released,
        }

    def render(self) -> RenderableType:
        return Shown(text(self.location, "bold"), text(""), *self._leases(), *self._notes(), *self._release())

    def _lease_data(self, each: HeldLease) -> dict[str, Any]:
        keeps = self.keeps.get(each.lease)
        return {
            "lease": each.lease,
            "version": each.version,
            "renewed": time(each.renewed_ms),
            "expires": time(each.expires_ms),
            "standing": self._standing(each).name.lower(),
            "holder": self.holders.get(each.lease),
            "objects": len(each.objects),
            "keepsFiles": None if self.unknown_keeps else 0 if keeps is None else keeps.files,
            "keepsBytes": None if self.unknown_keeps else 0 if keeps is None else keeps.size_bytes,
        }

    def _leases(self) -> Iterator[RenderableType]:
        if not self.found.leases:
            yield text("nobody holds a lease")
            return
        columns = ("lease", "#version", "renewed", "ago", "until", "", "#keeps files", "#bytes", "held by")
        yield table(columns, [self._row(each) for each in self.found.leases])

    def _row(self, each: HeldLease) -> Sequence[object]:
        keeps = self.keeps.get(each.lease)
        standing = self._standing(each)
        return (
            each.lease,
            each.version,
            second(each.renewed_ms),
            duration(max(0, self.own_ms - each.renewed_ms)),
            second(each.expires_ms),
            "" if standing is Standing.COUNTS else standing.value,
            None if self.unknown_keeps else 0 if keeps is None else keeps.files,
            None if self.unknown_keeps else size(0 if keeps is None else keeps.size_bytes),
            self.holders.get(each.lease),
        )

    def _notes(self) -> Iterator[RenderableType]:
        if self.found.leases:
            yield text("")
            yield text("Times are the store's; only how long ago is by this machine's clock.")
        if self.unknown_keeps is not None and self.found.leases:
            yield text(f"what they keep is not known: {self.unknown_keeps}", "yellow")
        for path in self.found.unknown:
            yield text(f"{path} is not understood by this release, so that no vacuum deletes anything", "yellow")

    def _release(self) -> Iterator[RenderableType]:
        if self.asked is None:
            return
        yield text("")
        if self.released is not None:
            yield text(f"lease {self.asked} is released; if its holder is alive, the next renewal takes it again")
            return
        yield text(f"lease {self.asked} would be released, which is for holders that are gone: one that is alive")
        yield text("renews it, and a vacuum in between takes what it still reads.")
        yield hint("nothing was changed; to do it", "leases", self.location, "--release", self.asked, "--apply")

    def _standing(self, each: HeldLease) -> Standing:
        return each.standing(self.found.reached_ms, self.own_ms)


async def leases(store: Store, clock: Clock, *, release: str | None = None, apply: bool = False) -> LeasesOutput:
    """Lists them; deletes the objects of `release` right after that where `apply` is set."""
    found = held([info async for page in store.list(LEASES) for info in page])
    if not (found.leases or found.unknown or await _is_table(store)):
        raise InvalidInput(f"there is no table at {store.location}; check the location")
    asked = next((each for each in found.leases if each.lease == release), None)
    if release is not None and asked is None:
        raise InvalidInput(
            f"there is no lease {release} on {store.location}; it may have ended, or expired and been swept"
        )
    keeps, unknown = await _keeps(store, clock) if found.leases else ({}, None)
    holders, released = await _holders(store, found.leases), None
    if asked is not None and apply:
        paths = [each.name.path for each in asked.objects]
        await delete_confirmed(store, paths)
        released = len(paths)
    return LeasesOutput(store.location, found, clock.wall_ms(), holders, keeps, unknown, release, released)


async def _is_table(store: Store) -> bool:
    """Whatever is in its log: one that is damaged may have leases all the same."""
    for name in NAMES:
        if await has_log(store, name):
            return True
    return False


async def _keeps(store: Store, clock: Clock) -> tuple[Mapping[str, Group], str | None]:
    """What a vacuum by the table's own retention would delete were it not for each lease, as its survey says."""
    means = Means(this_process("lakecommit leases"), lambda: uuid.uuid4().hex, clock, random.random)
    try:
        survey = await TableVacuum(store, await table_at(store, clock), Asked(), means).survey()
    except (InvalidInput, CorruptState, ContradictoryState, LocalDiskFailed) as error:
        # Who holds what is there to see all the same, and a lease to be released.
        return {}, str(error)
    found: dict[str, Group] = {}
    for each in survey.held_back:
        known = found.get(each.lease.name.lease)
        if known is None or known.files < each.files.files:
            found[each.lease.name.lease] = each.files
    return found, None


async def _holders(store: Store, found: Sequence[HeldLease]) -> Mapping[str, str]:
    """Of the first of them: what they say is in objects of their own."""

    async def said(each: HeldLease) -> str | None:
        body = await store.get(each.newest_path)
        return str(who_of(body.body)) if isinstance(body, Found) else None

    shown = found[:HOLDERS_READ]
    return {each.lease: who for each, who in zip(shown, await in_parallel(said, shown), strict=True) if who is not None}


def _id(_: click.Context, __: click.Parameter, given: str | None) -> str | None:
    if given is not None and re.fullmatch(r"[0-9a-f]{32}", given) is None:
        raise click.BadParameter(f"{given} is no lease: these are 32 hexadecimal digits, as 'leases' shows them")
    return given


@click.command("leases")
@click.argument("location", metavar="TABLE")
@click.option("--release", callback=_id, metavar="ID", help="End this lease, whose holder is gone.")
@click.option("--apply", is_flag=True, help="With --release: do it. Without this, what would be done is shown.")
@store_option
@json_option
def command(location: str, release: str | None, apply: bool, store_options: Mapping[str, str], as_json: bool) -> None:
    """List who reads which version of TABLE, until when at the longest, and how much a vacuum leaves because of it.

    A lease that is not renewed any more expires by itself. --release ends one at once: for holders that are gone, since
    one that is alive renews it.
    """
    if apply and release is None:
        raise click.UsageError("--apply goes with --release ID: there is nothing else to do")
    store = open_store(location, store_options)
    show(run(leases(store, SystemClock(), release=release, apply=apply)), as_json=as_json)
