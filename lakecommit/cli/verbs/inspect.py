"""`lakecommit inspect TABLE|OBJECT`: a manifest, a seal or a part of the log, decoded; or what a table has of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import click
from rich.console import Group, RenderableType

from lakecommit.cli.arguments import json_option, run, store_option
from lakecommit.cli.hints import hint
from lakecommit.cli.output import Indented, show, size, table, text, time
from lakecommit.cli.tables import table_at
from lakecommit.clock import SystemClock
from lakecommit.commands import command as command_line
from lakecommit.errors import InvalidInput
from lakecommit.formats.registry import NAMES, format_named
from lakecommit.model import Manifest, Seal
from lakecommit.state import layout
from lakecommit.state.codec import decode_any, digest_of
from lakecommit.state.container import MAX_OBJECT_BYTES
from lakecommit.state.layout import ROOT
from lakecommit.state.stored import NamedManifest, NamedSeal, list_of_all_queries
from lakecommit.storage.base import Found, ObjectInfo, Store
from lakecommit.storage.location import open_store
from lakecommit.watermark import as_text

MAX_RECORDS = 200
# How many objects of the log are named: there are as many as versions.
LOG_OBJECTS = 5


@dataclass(frozen=True, slots=True)
class Record:
    """`kind` is `seal` or `manifest`."""

    kind: str
    query: str
    epoch: int
    path: str


@dataclass(frozen=True, slots=True)
class ManifestOutput:
    location: str
    manifest: Manifest
    digest: str

    def data(self) -> dict[str, Any]:
        attempt = self.manifest.attempt
        return {
            "kind": "manifest",
            "location": self.location,
            "sha256": self.digest,
            "query": attempt.query,
            "epoch": attempt.epoch,
            "task": attempt.task,
            "attempt": attempt.id,
            "number": self.manifest.number,
            "plan": _parsed(self.manifest.plan),
            "files": [asdict(file) | {"stats": _parsed(file.stats)} for file in self.manifest.files],
        }

    def render(self) -> RenderableType:
        attempt, files = self.manifest.attempt, self.manifest.files
        head = (
            ("kind", "manifest"),
            ("query", attempt.query),
            ("epoch", str(attempt.epoch)),
            ("task, attempt", f"{attempt.task}, {attempt.id}"),
            ("number", str(self.manifest.number)),
            ("sha256", self.digest),
            (
                "in all",
                f"{len(files)} files, {sum(f.rows for f in files):,} rows, {size(sum(f.size_bytes for f in files))}",
            ),
        )
        rows = [(file.path, file.rows, size(file.size_bytes), time(file.created_ms)) for file in files]
        return Group(_head(self.location, head), text(""), table(("file", "#rows", "#bytes", "encoded"), rows))


@dataclass(frozen=True, slots=True)
class SealOutput:
    location: str
    seal: Seal
    digest: str

    def data(self) -> dict[str, Any]:
        seal = self.seal
        return {
            "kind": "seal",
            "location": self.location,
            "sha256": self.digest,
            "query": seal.query,
            "epoch": seal.epoch,
            "tableId": seal.table_id,
            "previous": None if seal.previous is None else seal.previous.hex(),
            "offsets": None if seal.fingerprint is None else _parsed(seal.fingerprint),
            "sealedMs": seal.sealed_ms,
            "files": seal.totals.files,
            "rows": seal.totals.rows,
            "sizeBytes": seal.totals.size_bytes,
            "watermark": as_text(seal.watermark_us),
            "backlog": None if seal.backlog is None else _parsed(seal.backlog),
            "replaces": seal.replaces,
            "winners": [asdict(winner) | {"digest": winner.digest.hex()} for winner in seal.winners],
        }

    def render(self) -> RenderableType:
        seal = self.seal
        head = (
            ("kind", "seal"),
            ("query", seal.query),
            ("epoch", str(seal.epoch)),
            ("table id", seal.table_id),
            ("sealed", time(seal.sealed_ms)),
            ("offsets", seal.fingerprint),
            ("in all", f"{seal.totals.files} files, {seal.totals.rows:,} rows, {size(seal.totals.size_bytes)}"),
            ("watermark", as_text(seal.watermark_us)),
            ("backlog", seal.backlog),
            ("replaces", "all that is in the table" if seal.replaces else None),
            ("sha256", self.digest),
            ("seal before", None if seal.previous is None else seal.previous.hex()),
        )
        rows = [(str(w.task), w.attempt, w.manifests, w.digest.hex() or None) for w in seal.winners]
        winners = table(("#task", "winning attempt", "#manifests", "digest of its manifests"), rows)
        return Group(_head(self.location, head), text(""), winners)


@dataclass(frozen=True, slots=True)
class RecordsOutput:
    """What can be inspected below a table. `more` says that there is more than is listed. `log` are the objects of its
    log that tell most."""

    location: str
    records: tuple[Record, ...]
    more: bool
    log: tuple[str, ...] = ()

    def data(self) -> dict[str, Any]:
        records = [asdict(each) | {"location": f"{self.location}/{each.path}"} for each in self.records]
        log = [f"{self.location}/{path}" for path in self.log]
        return {"kind": "table", "location": self.location, "records": records, "more": self.more, "log": log}

    def render(self) -> RenderableType:
        if not self.records and not self.log:
            return Group(text(self.location, "bold"), text("there is nothing to inspect: no seal and no manifest"))
        parts: list[RenderableType] = [text(self.location, "bold")]
        if self.log:
            parts += [text(""), text("of the log, the newest:"), *(Indented(text(path)) for path in self.log)]
        if not self.records:
            parts += [text(""), text("there is no seal and no manifest")]
            return Group(*parts, text(""), hint("to see one", "inspect", f"{self.location}/{self.log[0]}"))
        for query, records in groupby(self.records, key=lambda each: each.query):
            rows = [(str(each.epoch), each.kind, each.path.partition(f"{query}/")[2]) for each in records]
            parts += [text(""), text(f"{layout.queries_prefix()}/{query}"), Indented(table(("#epoch", "", ""), rows))]
        if self.more:
            parts += [text(""), text(f"… and more; only the first {MAX_RECORDS} are listed")]
        newest = max(self.records, key=lambda each: (each.kind == "seal", each.epoch))
        example = hint("to see one", "inspect", f"{self.location}/{newest.path}")
        return Group(*parts, text(""), example)


@dataclass(frozen=True, slots=True)
class LogObjectOutput:
    """An object of a table's log, in the words of its format."""

    location: str
    said: Mapping[str, Any]

    def data(self) -> dict[str, Any]:
        return {"location": self.location, **self.said}

    def render(self) -> RenderableType:
        lists = {name: each for name, each in self.said.items() if _is_table(each)}
        rows = tuple((name, _plain(each)) for name, each in self.said.items() if name not in lists)
        parts = [_head(self.location, rows)]
        for name, each in lists.items():
            parts += [text(""), text(f"{name}: {len(each):,}"), _rows(each)]
        return Group(*parts)


async def list_records(store: Store) -> RecordsOutput | None:
    """What can be inspected below the table at the store's location; None where there is neither a table nor state.

    Cost: listing up to `MAX_RECORDS` objects of the writers' state, and the log; without any, opening the table.
    """
    records: list[Record] = []
    async for page in list_of_all_queries(store):
        records += [_record(named) for named in page if not isinstance(named, ObjectInfo)]
        if len(records) > MAX_RECORDS:
            break
    table_format = await table_at(store, SystemClock())
    log = tuple(await table_format.log_objects(LOG_OBJECTS))
    if not (records or log) and await table_format.open() is None:
        return None
    return RecordsOutput(store.location, tuple(records[:MAX_RECORDS]), len(records) > MAX_RECORDS, log)


def _record(named: NamedManifest | NamedSeal) -> Record:
    if isinstance(named, NamedSeal):
        return Record("seal", named.query, named.epoch, named.path)
    return Record("manifest", named.attempt.query, named.attempt.epoch, named.path)


async def read_record(store: Store, key: str, location: str) -> ManifestOutput | SealOutput:
    """Raises `InvalidInput` if there is no such object, `CorruptState` if it is damaged or something else."""
    length = await store.size(key)
    if length is None:
        table_location = location.removesuffix(f"/{key}")
        raise InvalidInput(
            f"there is no object at {location}; to see what there is: {command_line('inspect', table_location)}"
        )
    if length > MAX_OBJECT_BYTES:
        raise InvalidInput(f"{location} has {length} bytes: no manifest or seal is that large; name another object")
    found = await store.get(key)
    if not isinstance(found, Found):
        raise InvalidInput(f"{location} was deleted while it was looked at; look again")
    record = decode_any(found.body, location)
    digest = digest_of([found.body]).hex()
    if isinstance(record, Manifest):
        return ManifestOutput(location, record, digest)
    return SealOutput(location, record, digest)


def split_location(location: str) -> tuple[str, str]:
    """The table's location and the object's key below it; for an object outside of a table, its directory and name."""
    table_location, found, rest = location.rpartition(f"/{ROOT}/")
    if found:
        return table_location or "/", f"{ROOT}/{rest}"
    directory, slash, name = location.rpartition("/")
    if not name or directory.endswith(":/"):
        raise InvalidInput(f"the location names no object; name a manifest or a seal below {ROOT}/users")
    return (directory or slash or "."), name


async def read_log_object(location: str, store_options: Mapping[str, str]) -> LogObjectOutput | None:
    """An object of a log; None where it is none."""
    for name in NAMES:
        log = format_named(name).log
        table_location, found, rest = location.rpartition(f"/{log}/")
        if found:
            store = open_store(table_location or "/", store_options)
            path = f"{log}/{rest}"
            said = await (await table_at(store, SystemClock())).decoded(path)
            return None if said is None else LogObjectOutput(f"{store.location}/{path}", said)
    return None


async def inspect(
    location: str, store_options: Mapping[str, str]
) -> RecordsOutput | ManifestOutput | SealOutput | LogObjectOutput:
    """An object is shown; of a table, what can be shown."""
    if (of_log := await read_log_object(location, store_options)) is not None:
        return of_log
    table_location, key = split_location(location.rstrip("/") or location)
    store = open_store(table_location, store_options)
    if await store.size(key) is None and f"/{ROOT}/" not in location:
        listed = await list_records(open_store(location, store_options))
        if listed is not None:
            return listed
    return await read_record(store, key, f"{store.location}/{key}")


@click.command("inspect")
@click.argument("location", metavar="TABLE|OBJECT")
@store_option
@json_option
def command(location: str, store_options: Mapping[str, str], as_json: bool) -> None:
    """Decode OBJECT, a manifest, a seal or an object of the log; or list what TABLE has of them."""
    show(run(inspect(location, store_options)), as_json=as_json)


def _parsed(content: str) -> Any:
    """JSON as JSON, anything else as the text that it is."""
    try:
        return json.loads(content)
    except ValueError:
        return content


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _rows(rows: list[dict[str, Any]]) -> RenderableType:
    """A table where all have the same to say, and else each on a line of its own."""
    columns = list(rows[0])
    if any(list(row) != columns for row in rows):
        return Group(*(text(_plain(row)) for row in rows))
    return table(columns, [[_plain(row[column]) for column in columns] for row in rows])


def _plain(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _head(location: str, rows: tuple[tuple[str, str | None], ...]) -> RenderableType:
    return Group(text(location, "bold"), table(("", ""), rows))
