"""`lakecommit doctor [TABLE]`: what newcomers trip over, checked, each with what to do about it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import click
from rich.console import Group, RenderableType

from lakecommit.cli.arguments import json_option, run, store_option
from lakecommit.cli.environment import Check, Verdict, environment_checks
from lakecommit.cli.output import show, table, text
from lakecommit.clock import SystemClock
from lakecommit.errors import LakecommitError
from lakecommit.formats.delta.log import open_table
from lakecommit.state.layout import ROOT
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
        return Group(table(("", "", ""), rows))


async def table_checks(store: Store, probe_id: str) -> list[Check]:
    """Reaches for the table and tries the one thing that everything rests on: create-if-absent.

    The probe object is below the table's own state directory and is deleted again.
    """
    try:
        found = await open_table(store, SystemClock())
    except LakecommitError as error:
        return [Check("store", Verdict.FAILED, f"{store.location} cannot be read: {error}")]
    what = "no table yet" if found is None else f"Delta table at version {found.version}"
    reached = Check("store", Verdict.OK, f"{store.location}: reachable, {what}")
    try:
        return [reached, await create_if_absent(store, f"{ROOT}/doctor/{probe_id}")]
    except LakecommitError as error:
        return [reached, Check("create-if-absent", Verdict.FAILED, f"the probe object cannot be written: {error}")]


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
    """Check Python, Java, Spark and, where TABLE is given, its object store.

    Writes a probe object below TABLE and deletes it again.
    """
    checks = environment_checks()
    if location is not None:
        checks += run(table_checks(open_store(location, store_options), uuid.uuid4().hex))
    output = DoctorOutput(tuple(checks))
    show(output, as_json=as_json)
    if not output.healthy:
        raise SystemExit(1)


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
