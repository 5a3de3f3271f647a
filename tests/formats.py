"""The formats that tests run on: how a version is read and what another writer's looks like, for each of them.

Tests tell a version as a list of actions, each a dictionary with one key, whatever the format: `commitInfo`,
`metaData`, `txn` for a mark, `add` and `remove`. That is how Delta spells it, so that its adapter has little to do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from lakecommit.formats.change import Kind
from lakecommit.formats.delta.table import DeltaFormat
from lakecommit.formats.parquet.table import ParquetFormat
from lakecommit.formats.table_format import TableFormat
from tests.tiny import version as tiny
from tests.tiny.table import TinyFormat

Action = dict[str, Any]


class DeltaLog:
    directory = "_delta_log"

    def open(self, store: Any, **parts: Any) -> TableFormat:
        return DeltaFormat(store, **parts)

    def path(self, version: int) -> str:
        return f"_delta_log/{version:020d}.json"

    def version_at(self, path: str) -> int | None:
        """The version whose own object this is; None where it is something else of the log."""
        name = path.removeprefix("_delta_log/")
        return int(name[:20]) if len(name) == 25 and name.endswith(".json") and name[:20].isdecimal() else None

    def actions(self, body: bytes) -> list[Action]:
        return [json.loads(line) for line in body.splitlines()]

    def body(self, actions: Sequence[Action]) -> bytes:
        return "".join(json.dumps(action) + "\n" for action in actions).encode()


class TinyLog:
    directory = tiny.LOG

    def open(self, store: Any, **parts: Any) -> TableFormat:
        return TinyFormat(store, **parts)

    def path(self, version: int) -> str:
        return tiny.path_of(version)

    def version_at(self, path: str) -> int | None:
        return int(path.rpartition("/")[2])

    def actions(self, body: bytes) -> list[Action]:
        said = json.loads(body)
        info = {"timestamp": said["at_ms"], "operation": _OPERATIONS.get(said["kind"], said["kind"])}
        info |= {"txnId": said["id"], "lakecommit": _notes(said)}
        if said.get("user_metadata") is not None:
            info["userMetadata"] = said["user_metadata"]
        found: list[Action] = [{"commitInfo": info}]
        if "table" in said:
            found.append({"protocol": {}})
            table, columns = said["table"], said["table"]["partition_columns"]
            metadata = {"id": table["id"], "schemaString": table["schema"], "partitionColumns": columns}
            found.append({"metaData": {**metadata, "configuration": table.get("configuration", {})}})
        for app, mark in said.get("marks", ()):
            found.append({"txn": {"appId": app, "version": mark, "lastUpdated": said["at_ms"]}})
        found += [{"remove": {"path": path}} for path in said.get("removes", ())]
        for file in said.get("adds", ()):
            found.append({"add": {"path": file["path"], "size": file["size_bytes"], "stats": file["stats"]}})
        return found

    def body(self, actions: Sequence[Action]) -> bytes:
        """As another writer would say it."""
        info = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
        said: dict[str, Any] = {"id": info.get("txnId", "foreign"), "kind": info.get("operation", "foreign")}
        said["at_ms"] = info.get("timestamp", 1)
        for metadata in (action["metaData"] for action in actions if "metaData" in action):
            schema, columns = metadata["schemaString"], metadata["partitionColumns"]
            said["table"] = {"id": metadata["id"], "schema": schema, "partition_columns": columns}
            said["table"]["configuration"] = metadata["configuration"]
        said["marks"] = [[each["txn"]["appId"], each["txn"]["version"]] for each in actions if "txn" in each]
        said["removes"] = [each["remove"]["path"] for each in actions if "remove" in each]
        adds = (each["add"] for each in actions if "add" in each)
        said["adds"] = [{"path": each["path"], "size_bytes": each["size"], "stats": each.get("stats")} for each in adds]
        return tiny.encode(said)


class ParquetLog:
    """One without versions that tell actions: `tests/spark_log` reads it, and the simulation judges its objects."""

    directory = "_spark_metadata"

    def open(self, store: Any, **parts: Any) -> TableFormat:
        return ParquetFormat(store, **parts)

    def path(self, version: int) -> str:
        """Of a directory of batch writes, whose versions are all compacts."""
        return f"{self.directory}/{version}.compact"


FORMATS: dict[str, DeltaLog | TinyLog] = {"delta": DeltaLog(), "tiny": TinyLog()}
LOGS: dict[str, DeltaLog | TinyLog | ParquetLog] = {**FORMATS, "parquet": ParquetLog()}
_OPERATIONS = {
    Kind.APPEND_EPOCHS.name: "STREAMING UPDATE",
    Kind.REPLACE_EPOCH.name: "STREAMING UPDATE",
    Kind.APPEND_BATCH.name: "WRITE",
    Kind.REPLACE_BATCH.name: "WRITE",
    Kind.EVOLVE.name: "UPDATE SCHEMA",
    Kind.FENCE.name: "FENCE",
}
_used: list[Any] = [FORMATS["delta"]]


def used() -> Any:
    """The one that is tested now."""
    return _used[-1]


@contextmanager
def using(name: str) -> Iterator[None]:
    _used.append(LOGS[name])
    try:
        yield
    finally:
        _used.pop()


@pytest.fixture(params=sorted(FORMATS))
def table_format(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every test that has this runs on each format, unless it is marked `delta_log`."""
    with using(request.param):
        yield request.param


def _notes(said: dict[str, Any]) -> dict[str, Any]:
    holds = said.get("holds", ())
    notes: dict[str, Any] = {}
    for name, key in (("epochs", "run"), ("replaced", "again"), ("settled", "settled"), ("discarded", "left_out")):
        notes[name] = {each["query"]: each[key] for each in holds if each[key]}
    if any(each["watermark_us"] is not None for each in holds):
        notes["watermarks"] = {each["query"]: each["watermark_us"] for each in holds}
    notes["names"] = {each["query"]: each["name"] for each in holds if each["name"] is not None}
    notes["kept"] = said.get("kept", []) if said["kind"] == Kind.APPEND_BATCH.name else []
    return {name: note for name, note in notes.items() if note}
