"""`lakecommit vacuum TABLE`: deletes files that no version, lease or writer needs any more."""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import click
from rich.console import Group as Shown
from rich.console import RenderableType

from lakecommit.cli.arguments import age_ms, json_option, run, shown_age, store_option
from lakecommit.cli.hints import Hint, hint
from lakecommit.cli.output import second, show, size, table, text, time
from lakecommit.cli.progress import progress_bar
from lakecommit.cli.tables import table_at
from lakecommit.clock import Clock, SystemClock
from lakecommit.leases.who import this_process, who_of
from lakecommit.storage.base import Found as Stored
from lakecommit.storage.base import Get, Store
from lakecommit.storage.location import open_store
from lakecommit.vacuuming.asked import ORPHANS_AFTER_MS, Asked
from lakecommit.vacuuming.candidates import Group
from lakecommit.vacuuming.report import Found, HeldBack, Vacuumed
from lakecommit.vacuuming.vacuum import Means, TableVacuum

HOLDERS_READ = 50


@dataclass(frozen=True, slots=True)
class VacuumOutput:
    """`done` is None where nothing was to be changed. `holders` are what leases say of those who have them."""

    location: str
    asked: Asked
    found: Found
    done: Vacuumed | None = None
    holders: Mapping[str, str] = field(default_factory=dict)

    @property
    def well(self) -> bool:
        return self.done is None or self.done.well

    def data(self) -> dict[str, Any]:
        found, done = self.found, self.done
        return {
            "location": self.location,
            "version": found.newest,
            "retainMs": found.retain_ms,
            "full": self.asked.full,
            "oldUpTo": found.old,
            "goesUpTo": found.version,
            "sweptBefore": found.swept,
            **_group_data(found.all),
            "kinds": [{"kind": each.name, **_group_data(each)} for each in found.kinds],
            "directories": [{"directory": each.name, **_group_data(each)} for each in found.directories],
            "heldBack": [self._held_data(each) for each in found.held_back],
            "ignoredLeases": sorted(self.asked.ignored),
            "missingVersions": None if found.missing is None else list(found.missing),
            "applied": None
            if done is None
            else {
                "deleted": done.swept.deleted,
                "unconfirmed": done.swept.unconfirmed,
                "restored": done.swept.restored,
                "fenced": done.fenced,
            },
        }

    def _held_data(self, held: HeldBack) -> dict[str, Any]:
        lease = held.lease
        return {
            "lease": lease.name.lease,
            "version": lease.name.version,
            "expires": time(lease.expires_ms),
            "holder": self.holders.get(lease.name.path),
            **_group_data(held.files),
        }

    def render(self) -> RenderableType:
        parts: list[RenderableType] = [text(self.location, "bold"), text(""), *map(text, self._how_far()), text("")]
        parts += self._files()
        parts += self._held_back()
        for ignored in sorted(self.asked.ignored):
            verb = "is" if self.done is not None else "would be"
            parts.append(text(f"lease {ignored} {verb} cut off: its reader fails when it looks at it again", "yellow"))
        if self.found.missing is not None and not self.asked.full:
            first, last = self.found.missing
            parts += [
                text(""),
                text(
                    f"versions {first} to {last} are no longer in the log, so that nobody knows all that they removed",
                    "yellow",
                ),
                self._again("to look for it in a listing of the table", "--full"),
            ]
        parts += self._problems()
        if self.done is None and self.found.all.files:
            parts += [text(""), self._again("nothing was changed; to delete this", "--apply")]
        return Shown(*parts)

    def _how_far(self) -> Iterator[str]:
        found = self.found
        at = "no version yet" if found.newest < 0 else f"version {found.newest}"
        if not found.removes_files:
            yield f"{at}; no version of this directory ever removes a file"
            if not self.asked.full:
                yield "files that no version names are found with --full"
            return
        kept = f"for {shown_age(found.retain_ms)}" if found.retain_ms else "not at all"
        may_go = f": what versions up to {found.old} removed may go" if found.newest >= 0 else ""
        yield f"{at}; what is removed is kept {kept}{may_go}"
        if 0 <= found.version < found.old:
            yield f"leases let it go as far as version {found.version}"

    def _files(self) -> Iterator[RenderableType]:
        found = self.found
        if self.done is not None and self.done.fenced:
            # What there is was not counted; the end says why nothing went.
            return
        if not found.all.files:
            yield text("there is nothing to delete")
            return
        yield text("deleted:" if self.done is not None else "would be deleted:")
        yield table(("what", "#files", "#bytes"), [_row(each.name, each) for each in found.kinds])
        if len(found.directories) > 1:
            yield text("")
            yield table(
                ("largest directories", "#files", "#bytes"),
                [_row(each.name or ".", each) for each in found.directories],
            )

    def _held_back(self) -> Iterator[RenderableType]:
        if not self.found.held_back:
            return
        yield text("")
        yield text("held back by leases:")
        yield table(
            ("lease", "#version", "until", "#files", "#bytes", "held by"),
            [
                (
                    each.lease.name.lease,
                    each.lease.name.version,
                    second(each.lease.expires_ms),
                    each.files.files,
                    size(each.files.size_bytes),
                    self.holders.get(each.lease.name.path),
                )
                for each in self.found.held_back
            ],
        )

    def _problems(self) -> Iterator[RenderableType]:
        done = self.done
        if done is None:
            return
        if done.swept.restored:
            yield text(f"{done.swept.restored:,} files stay: they were added again meanwhile")
        if done.fenced:
            yield text(f"nothing was deleted: readers took leases {done.fenced} times in between; run it again", "red")
        if done.swept.unconfirmed:
            yield text(f"{done.swept.unconfirmed:,} deletions are not confirmed by the store; run it again", "red")

    def _again(self, why: str, more: str) -> Hint:
        asked = self.asked
        words = [] if asked.retain_ms is None else ["--retain", shown_age(asked.retain_ms)]
        words += ["--full"] if asked.full else []
        words += ["--orphans-after", shown_age(asked.orphans_after_ms)] if asked.full else []
        for ignored in sorted(asked.ignored):
            words += ["--ignore-lease", ignored]
        words += ["--short-retention"] if asked.short else []
        return hint(why, "vacuum", self.location, *words, more)


async def vacuum(
    store: Store, clock: Clock, asked: Asked, *, apply: bool = False, as_json: bool = False
) -> VacuumOutput:
    """Looks what may go, and deletes it right after that where `apply` is set."""
    means = Means(this_process("lakecommit vacuum"), lambda: uuid.uuid4().hex, clock, random.random)
    work = TableVacuum(store, await table_at(store, clock), asked, means)
    with _bars(as_json) as bars:
        done = await work.apply(bars) if apply else None
        found = await work.survey(bars) if done is None else done.found
    return VacuumOutput(store.location, asked, found, done, await _holders(store, found.held_back))


def _age(_: click.Context, __: click.Parameter, given: str | None) -> int | None:
    return None if given is None else age_ms(given)


def _leases(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    for each in given:
        if re.fullmatch(r"[0-9a-f]{32}", each) is None:
            raise click.BadParameter(f"{each} is no lease: these are 32 hexadecimal digits, as 'vacuum' shows them")
    return given


@click.command("vacuum")
@click.argument("location", metavar="TABLE")
@click.option(
    "--retain",
    "retain_ms",
    callback=_age,
    metavar="AGE",
    help="How long what was removed is kept: 90m, 24h, 7d. Without this, as the table says; a Delta table says 7d.",
)
@click.option("--full", is_flag=True, help="Also list the table for files that no version and no writer names.")
@click.option(
    "--orphans-after",
    "orphans_after_ms",
    callback=_age,
    show_default=shown_age(ORPHANS_AFTER_MS),
    metavar="AGE",
    help="With --full: how old such files have to be. Younger ones may be of a writer that has not committed yet.",
)
@click.option(
    "--ignore-lease",
    "ignored",
    multiple=True,
    callback=_leases,
    metavar="ID",
    help="Delete what this lease keeps, too. Its reader fails. May be given several times.",
)
@click.option("--short-retention", "short", is_flag=True, help="Allow ages below the table's own retention.")
@click.option("--apply", is_flag=True, help="Delete it. Without this, what would be deleted is shown.")
@store_option
@json_option
def command(
    location: str,
    retain_ms: int | None,
    full: bool,
    orphans_after_ms: int | None,
    ignored: tuple[str, ...],
    short: bool,
    apply: bool,
    store_options: Mapping[str, str],
    as_json: bool,
) -> None:
    """Delete files of TABLE that were removed from it long ago.

    Shows what would go, and deletes it with --apply. A file stays if a version within the retention, a reader's lease
    or an epoch that is not committed yet needs it. The log says what was removed; the table is listed only with --full.
    """
    if orphans_after_ms is not None and not full:
        raise click.UsageError("--orphans-after goes with --full: nothing else looks for files that nobody names")
    orphans_after_ms = ORPHANS_AFTER_MS if orphans_after_ms is None else orphans_after_ms
    asked = Asked(retain_ms, full, orphans_after_ms, frozenset(ignored), short)
    store = open_store(location, store_options)
    output = run(vacuum(store, SystemClock(), asked, apply=apply, as_json=as_json))
    show(output, as_json=as_json)
    if not output.well:
        raise SystemExit(1)


@contextmanager
def _bars(as_json: bool) -> Iterator[_Bars]:
    with ExitStack() as stack:
        yield _Bars(stack, as_json)


class _Bars:
    """One bar after the other."""

    def __init__(self, stack: ExitStack, as_json: bool) -> None:
        self._stack = stack
        self._as_json = as_json

    def begin(self, what: str, steps: int | None) -> None:
        self._stack.close()
        self._step = self._stack.enter_context(progress_bar(what, steps, as_json=self._as_json))

    def advance(self, steps: int = 1) -> None:
        self._step(steps)


async def _holders(store: Get, held: Sequence[HeldBack]) -> Mapping[str, str]:
    holders = {}
    for each in held[:HOLDERS_READ]:
        path = each.lease.name.path
        found = await store.get(path)
        if isinstance(found, Stored):
            holders[path] = str(who_of(found.body))
    return holders


def _row(name: str, group: Group) -> tuple[object, ...]:
    more = f" and {group.unsized:,} of unknown size" if group.unsized else ""
    return (name, group.files, f"{size(group.size_bytes)}{more}")


def _group_data(group: Group) -> dict[str, Any]:
    return {"files": group.files, "sizeBytes": group.size_bytes, "filesOfUnknownSize": group.unsized}
