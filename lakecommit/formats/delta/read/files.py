"""From `add` and `remove` actions to files as readers take them. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from lakecommit.formats.delta.log.file_actions import FileActions, vector_id
from lakecommit.formats.delta.read.vectors import vector_words
from lakecommit.formats.delta.schema.protocol import column_mapping_mode
from lakecommit.formats.delta.state import DeltaState
from lakecommit.formats.files import location_of_uri, reader_location
from lakecommit.formats.reading import GoneFile, ReadFile
from lakecommit.formats.uris import is_elsewhere, path_of_uri
from lakecommit.schema import parse

_ROWS_FIRST = re.compile(r'\{"numRecords":(\d+)[,}]')


class FileReader:
    """Makes files of the actions of one version."""

    def __init__(self, state: DeltaState, location: str) -> None:
        self._below = reader_location(location).rstrip("/") + "/"
        self._columns = _logged_names(state)

    def of_page(self, page: FileActions) -> list[ReadFile]:
        """Column by column, which is several times quicker than row by row. Precondition: they are `add` actions."""
        names = ("path", "size", "modificationTime", "stats", "deletionVector")
        columns = {name: pc.struct_field(page.rows, name) for name in names}
        vectors: Sequence[Any] = [None] * len(page)
        if columns["deletionVector"].null_count < len(page):
            vectors = columns["deletionVector"].to_pylist()
        values: Sequence[Any] = [None] * len(page)
        if self._columns:
            values = pc.struct_field(page.rows, "partitionValues").to_pylist(maps_as_pydicts="strict")
        paths, sizes, times, stats = (columns[name].to_pylist() for name in names[:4])
        return [self._file(*each) for each in zip(paths, sizes, times, values, stats, vectors, strict=True)]

    def of_add(self, add: Mapping[str, Any]) -> ReadFile:
        return self._file(
            str(add["path"]),
            int(add["size"]),
            int(add.get("modificationTime") or 0),
            add.get("partitionValues"),
            add.get("stats"),
            add.get("deletionVector"),
        )

    def of_remove(self, remove: Mapping[str, Any]) -> GoneFile:
        vector = remove.get("deletionVector")
        return GoneFile(self._path(str(remove["path"])), _id_of(vector), bool(remove.get("dataChange", True)))

    def _file(
        self,
        path: str,
        size: int,
        modified_ms: int,
        values: Mapping[str, str | None] | None,
        stats: str | None,
        vector: Mapping[str, Any] | None,
    ) -> ReadFile:
        rows = _rows(stats)
        if vector and rows is not None:
            rows = max(0, rows - int(vector["cardinality"]))
        return ReadFile(
            path=self._path(path),
            size_bytes=size,
            modified_ms=modified_ms or 0,
            partition_values={name: (values or {}).get(logged) for logged, name in self._columns.items()},
            rows=rows,
            stats=stats or None,
            vector=vector_words(vector) if vector else None,
            vector_id=_id_of(vector),
        )

    def _path(self, path: str) -> str:
        """Below the table if the file is there, however the log names it."""
        if not is_elsewhere(path):
            return path_of_uri(path)
        location = location_of_uri(path)
        return location.removeprefix(self._below) if location.startswith(self._below) else path


def _logged_names(state: DeltaState) -> dict[str, str]:
    """The partition columns, by the names that the log has for them."""
    names = state.metadata.partition_columns
    if column_mapping_mode(state.protocol, state.metadata) == "none":
        return {name: name for name in names}
    physical = {field.name: field.physical_name for field in parse(state.metadata.schema_string).fields}
    return {physical.get(name, name): name for name in names}


def _id_of(vector: Mapping[str, Any] | None) -> str:
    return vector_id(vector["storageType"], vector["pathOrInlineDv"], vector.get("offset")) if vector else ""


def _rows(stats: str | None) -> int | None:
    """How many rows a file has, deleted ones included. Nearly always that is what statistics begin with."""
    if not stats:
        return None
    if (found := _ROWS_FIRST.match(stats)) is not None:
        return int(found[1])
    try:
        rows = json.loads(stats).get("numRecords")
    except (ValueError, AttributeError):
        return None
    return rows if isinstance(rows, int) else None
