"""The model's view of schemas: how the table's may change, and that every file fits the one that it was written for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .schemas import ODD
from .violations import Violation

if TYPE_CHECKING:
    from .world import World

MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"
ID = "delta.columnMapping.id"
PHYSICAL = "delta.columnMapping.physicalName"
WIDER = {("integer", "long")}

Columns = dict[str, dict[str, Any]]


def columns_of(schema: str) -> Columns:
    """By the name that files have for them."""
    fields = json.loads(schema)["fields"]
    return {field["metadata"].get(PHYSICAL, field["name"]): field for field in fields}


def with_column(metadata: dict[str, Any], name: str) -> dict[str, Any]:
    """What another writer makes of the table that has it get a column."""
    schema, configuration = json.loads(metadata["schemaString"]), dict(metadata["configuration"])
    column: dict[str, Any] = {"name": name, "type": "long", "nullable": True, "metadata": {}}
    if MAX_COLUMN_ID in configuration:
        configuration[MAX_COLUMN_ID] = str(int(configuration[MAX_COLUMN_ID]) + 1)
        column["metadata"] = {ID: int(configuration[MAX_COLUMN_ID]), PHYSICAL: f"col-{name}"}
    schema["fields"].append(column)
    return {**metadata, "schemaString": json.dumps(schema), "configuration": configuration}


class SchemaModel:
    def __init__(self, world: World) -> None:
        self._world = world
        # By file, what its columns were when it was planned.
        self._written_for: dict[str, Columns] = {}

    def file_planned(self, path: str, schema: str, table_id: str | None) -> None:
        """A task is about to write a file for `schema`, which is in the table, unless there was none yet."""
        log = self._world.model.log
        written = self._written_for[path] = columns_of(schema)
        if table_id is None:
            return
        if problem := self._misfit(written, log.metadata):
            self._world.end_with(Violation(f"{path} is written for a schema that is not in the table: {problem}"))

    def version_created(self, number: int, before: dict[str, Any], after: dict[str, Any], adds: list[Any]) -> None:
        """A version makes `after` of the table's metadata, which was `before`."""
        if after is before or number == 0:
            return
        old, new = columns_of(before["schemaString"]), columns_of(after["schemaString"])
        if old != new:
            self._world.count("versions with a wider schema")
            if adds:
                raise Violation(f"version {number} adds files and changes the schema")
        self._check_columns(number, old, new)
        self._check_ids(number, before, after, new)
        apart = ("schemaString", "configuration")
        if {key: each for key, each in before.items() if key not in apart} != {
            key: each for key, each in after.items() if key not in apart
        }:
            raise Violation(f"version {number} makes another table of it")
        kept = {**before["configuration"], **after["configuration"]}
        if kept.keys() != after["configuration"].keys():
            raise Violation(f"version {number} loses properties of the table")
        changed = {key for key, each in before["configuration"].items() if after["configuration"][key] != each}
        if old != new and changed - {MAX_COLUMN_ID}:
            raise Violation(f"version {number} has a wider schema and sets {changed} back")

    def is_odd(self, schema: str) -> bool:
        """Whether rows of `schema` have a column that the table has with a type which is none of it."""
        table = {field["name"]: field for field in columns_of(self._world.model.log.metadata["schemaString"]).values()}
        return any(
            field["name"] == ODD and ODD in table and field["type"] != table[ODD]["type"]
            for field in columns_of(schema).values()
        )

    def check_add(self, number: int, path: str, metadata: dict[str, Any]) -> None:
        """A version adds a file: it has no column that the table has not."""
        written = self._written_for.get(path)
        if written is None:
            return
        if problem := self._misfit(written, metadata):
            raise Violation(f"version {number} adds {path}, which does not fit the table: {problem}")
        if written.keys() < columns_of(metadata["schemaString"]).keys():
            self._world.count("files of a narrower schema")

    def _check_columns(self, number: int, old: Columns, new: Columns) -> None:
        names = [field["name"].lower() for field in new.values()]
        if len(set(names)) != len(names):
            raise Violation(f"version {number} has a column twice: {names}")
        if list(new)[: len(old)] != list(old):
            raise Violation(f"version {number} loses or moves columns: {list(old)} become {list(new)}")
        for name, field in new.items():
            if name in old and (problem := self._changed(old[name], field)):
                raise Violation(f"version {number} changes a column: {problem}")
            if name not in old and not field["nullable"]:
                raise Violation(f"version {number} has a new column that is not nullable: {field}")

    def _check_ids(self, number: int, before: dict[str, Any], after: dict[str, Any], new: Columns) -> None:
        ids = [field["metadata"][ID] for field in new.values() if ID in field["metadata"]]
        highest = int(after["configuration"].get(MAX_COLUMN_ID, "0"))
        if len(set(ids)) != len(ids) or (ids and len(ids) != len(new)) or max(ids, default=0) > highest:
            raise Violation(f"version {number} gives columns the ids {ids}, with {highest} as the highest")
        if highest < int(before["configuration"].get(MAX_COLUMN_ID, "0")):
            raise Violation(f"version {number} sets the highest id of a column back")

    def _misfit(self, written: Columns, metadata: dict[str, Any]) -> str | None:
        table = columns_of(metadata["schemaString"])
        for name, field in written.items():
            if name not in table:
                return f"it has no column {field['name']}"
            if problem := self._changed(field, table[name]):
                return problem
        return None

    def _changed(self, old: dict[str, Any], new: dict[str, Any]) -> str | None:
        """In what a column is not the same any more; its type may have become wider, where the table allows that."""
        wider = "delta.enableTypeWidening" in self._world.properties and (old["type"], new["type"]) in WIDER
        if old["type"] != new["type"] and not wider:
            return f"{old['name']} was {old['type']} and is {new['type']}"
        by_id = self._world.properties.get("delta.columnMapping.mode") == "id"
        if old["name"] != new["name"] or (by_id and old["metadata"][ID] != new["metadata"][ID]):
            return f"{old['name']} was {old['metadata']} and is {new['name']}, {new['metadata']}"
        return None
