"""`lakecommit doctor [TABLE]`: what newcomers trip over, checked, each with what to do about it."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import click
from rich.console import Group, RenderableType
from rich.text import Text

from lakecommit import commands
from lakecommit.cli.arguments import json_option, run, store_option
from lakecommit.cli.output import show, table, text
from lakecommit.cli.tables import table_at, title_of, version_of
from lakecommit.cli.verbs.doctor.environment import Check, Verdict, environment_checks
from lakecommit.clock import SystemClock
from lakecommit.errors import LakecommitError
from lakecommit.formats.base import TableState
from lakecommit.formats.plan import BATCH
from lakecommit.formats.registry import format_named
from lakecommit.formats.table_format import TableFormat
from lakecommit.model import QueryId, is_batch
from lakecommit.releasing.whole_table import DEAD_AFTER_MS
from lakecommit.state.layout import ROOT
from lakecommit.state.stored import NamedManifest, list_of_all_queries
from lakecommit.storage.base import AlreadyThere, Create, Created, CreateOutcome, Delete, Store
from lakecommit.storage.location import open_store

PROBE_TRIES = 5
_STYLES = {Verdict.OK: "green", Verdict.WARNING: "yellow", Verdict.FAILED: "red"}


@dataclass(frozen=True, slots=True)
class DoctorOutput:
    checks: tuple[Check, ...]

    @property
    def healthy(self) -> bool:
        return all(check.verdict is not Verdict.FAILED for check in self.checks)

    def data(self) -> dict[str, Any]:
        return {
            "healthy": self.healthy,
            "checks": [asdict(check) | {"verdict": check.verdict.value} for check in self.checks],
        }

    def render(self) -> RenderableType:
        rows = [(text(check.verdict.value, _STYLES[check.verdict]), check.name, _facts(check)) for check in self.checks]
        return Group(table(("", "", ""), rows), text(""), self._verdict())

    def _verdict(self) -> Text:
        counts = {verdict: sum(check.verdict is verdict for check in self.checks) for verdict in Verdict}
        failed, warnings = counts[Verdict.FAILED], counts[Verdict.WARNING]
        if not failed and not warnings:
            return text("all good", "green")
        said = [_counted(failed, "problem"), _counted(warnings, "warning")]
        return text(" and ".join(each for each in said if each), "red" if failed else "yellow")


async def table_checks(store: Store, probe_id: str) -> list[Check]:
    """Reaches for the table, asks whether rows can be appended to it, and tries what everything rests on:
    create-if-absent.

    The probe object is below the table's own state directory and is deleted again.
    """
    try:
        table_format = await table_at(store, SystemClock())
        found = await table_format.open()
    except LakecommitError as error:
        return [Check("store", Verdict.FAILED, f"{store.location} cannot be read: {error}")]
    nothing = format_named(table_format.name).foreign or "no table yet"
    what = nothing if found is None else f"{title_of(table_format)} table, {version_of(found)}"
    checks = [Check("store", Verdict.OK, f"{store.location}: reachable, {what}"), _can_append(table_format, found)]
    for doubt in () if found is None else table_format.doubts(found):
        verdict = Verdict.WARNING if doubt.readable else Verdict.FAILED
        checks.append(Check("log", verdict, doubt.says, doubt.remedy))
    try:
        return [
            *checks,
            await create_if_absent(store, f"{ROOT}/doctor/{probe_id}"),
            await cleaned_up(store, SystemClock().wall_ms()),
        ]
    except LakecommitError as error:
        return [*checks, Check("create-if-absent", Verdict.FAILED, f"the probe object cannot be written: {error}")]


async def cleaned_up(store: Store, now_ms: int) -> Check:
    """Whether somebody cleans up behind the writers: a committer in the driver does, an inline one does not.

    The newest epoch of each query stays in any case.
    """
    name, old = "clean-up", Counter[tuple[str, int]]()
    newest: dict[str, int] = {}
    async for page in list_of_all_queries(store):
        for named in page:
            if isinstance(named, NamedManifest):
                query, epoch = str(named.attempt.query), int(named.attempt.epoch)
                newest[query] = max(epoch, newest.get(query, epoch))
                old[query, epoch] += now_ms - named.modified_ms > DEAD_AFTER_MS
    # A batch write has one epoch, which goes once it is committed or dead.
    left = {
        key: count for key, count in old.items() if count and (is_batch(QueryId(key[0])) or key[1] < newest[key[0]])
    }
    if not left:
        return Check(name, Verdict.OK, "no state is left that is older than a day and not needed")
    queries = len({query for query, _ in left})
    return Check(
        name,
        Verdict.WARNING,
        f"{sum(left.values())} manifests of {queries} queries are older than a day",
        f"{commands.command('status', store.location)} says whether epochs are pending; otherwise nobody cleans up "
        "here, because lakecommit.register(spark) was not called, for instance: run from time to time "
        f"{commands.command('clean', store.location, '--apply')}",
    )


class CreateAndDelete(Create, Delete, Protocol):
    """The verbs that the probe takes."""


async def create_if_absent(store: CreateAndDelete, path: str) -> Check:
    """Creates `path` twice; the second time must be refused."""
    name = "create-if-absent"
    try:
        first = await _decided(store, path, b"first")
        if not isinstance(first, Created):
            return Check(name, Verdict.WARNING, f"not known: {_reason(first)}", "run doctor again")
        second = await _decided(store, path, b"second")
    finally:
        left = await store.delete([path])
    if isinstance(second, AlreadyThere):
        if left:
            return Check(name, Verdict.WARNING, f"works, but the probe object {path} could not be deleted")
        return Check(name, Verdict.OK, "the store refused to create an object twice")
    if isinstance(second, Created):
        return Check(
            name,
            Verdict.FAILED,
            "the store created an object that was already there",
            "do not write tables here: two writers could both believe that they won; use a store that honours "
            "If-None-Match on PUT",
        )
    return Check(name, Verdict.WARNING, f"not known: {_reason(second)}", "run doctor again")


@click.command("doctor")
@click.argument("location", metavar="[TABLE]", required=False)
@store_option
@json_option
def command(location: str | None, store_options: Mapping[str, str], as_json: bool) -> None:
    """Check Python, Java, Spark and, where TABLE is given, its object store and whether it can be appended to.

    Writes a probe object below TABLE and deletes it again. Exit code 0: no problems.
    """
    checks = environment_checks()
    if location is not None:
        checks += run(table_checks(open_store(location, store_options), uuid.uuid4().hex))
    output = DoctorOutput(tuple(checks))
    show(output, as_json=as_json)
    if not output.healthy:
        raise SystemExit(1)


def _can_append(table_format: TableFormat, found: TableState | None) -> Check:
    """Whether rows that have all of the table's columns could be appended, and by whom."""
    name = "append"
    if found is None:
        return Check(name, Verdict.OK, "the first write creates the table")
    try:
        table_format.plan(found, found.schema, None)
    except LakecommitError as error:
        page = format_named(table_format.name).features
        return Check(name, Verdict.FAILED, str(error), f"{page} says what can be written" if page else None)
    return Check(name, Verdict.OK, f"rows with the columns of the table can be appended to it{_by_whom(found.owner)}")


def _by_whom(owner: str | None) -> str:
    if owner is None:
        return ""
    if not owner:
        return ", by one query: the first that seals an epoch owns the directory from then on"
    who = "batch writes" if owner == BATCH else f"query {owner}"
    return f", by {who} alone, to whom the directory belongs"


def _counted(number: int, noun: str) -> str:
    return "" if not number else f"1 {noun}" if number == 1 else f"{number} {noun}s"


async def _decided(store: Create, path: str, body: bytes) -> CreateOutcome:
    """Tries again while the store says nothing definite."""
    outcome = await store.create(path, body)
    for _ in range(PROBE_TRIES):
        if isinstance(outcome, Created | AlreadyThere):
            break
        outcome = await store.create(path, body)
    return outcome


def _reason(outcome: CreateOutcome) -> str:
    return getattr(outcome, "reason", "the probe object was there before")


def _facts(check: Check) -> str:
    return check.facts if check.remedy is None else f"{check.facts}\n{check.remedy}"
