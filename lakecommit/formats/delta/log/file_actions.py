"""The actions of data files, `add` and `remove`, as Arrow arrays: one type for each, whatever log they were read from.

Nothing is left out that has to survive a checkpoint. Paths are kept as the log spells them: that is how actions of one
file find each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_TEXT_MAP = pa.map_(pa.string(), pa.string())
_DELETION_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
        ("maxRowIndex", pa.int64()),
    ]
)
ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", _TEXT_MAP),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
        ("tags", _TEXT_MAP),
        ("deletionVector", _DELETION_VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
        ("clusteringProvider", pa.string()),
    ]
)
# Tombstones have neither statistics nor tags in a checkpoint: they are there for vacuums.
REMOVE = pa.struct(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()),
        ("partitionValues", _TEXT_MAP),
        ("size", pa.int64()),
        ("deletionVector", _DELETION_VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
    ]
)

_DECODED_ROWS = 500


class FileKind(Enum):
    """The values are the log's names."""

    ADD = "add"
    REMOVE = "remove"

    @property
    def type(self) -> pa.StructType:
        return ADD if self is FileKind.ADD else REMOVE


@dataclass(frozen=True, slots=True)
class FileActions:
    """Some actions of one kind. `rows` is a struct array of the kind's type without nulls."""

    kind: FileKind
    rows: pa.StructArray

    def __len__(self) -> int:
        return len(self.rows)

    def to_dicts(self) -> Iterator[dict[str, Any]]:
        """Each action as a version of the log would have it: without its name, and without what is null."""
        # Some at a time: as Python's objects they take ten times as much as in Arrow.
        for start in range(0, len(self), _DECODED_ROWS):
            for row in self.rows.slice(start, _DECODED_ROWS).to_pylist(maps_as_pydicts="strict"):
                yield _without_nulls(row)

    def logical_files(self) -> list[str]:
        """The key of the logical file of each action, in their order."""
        paths = pc.struct_field(self.rows, "path").to_pylist()
        vectors = pc.struct_field(self.rows, "deletionVector")
        if vectors.null_count == len(vectors):
            return [key_of(path) for path in paths]
        kinds, places, offsets = (
            pc.struct_field(vectors, name).to_pylist() for name in ("storageType", "pathOrInlineDv", "offset")
        )
        return [
            key_of(path, None if place is None else vector_id(kind, place, offset))
            for path, kind, place, offset in zip(paths, kinds, places, offsets, strict=True)
        ]

    def cut(self, size: int) -> Iterator[FileActions]:
        """Parts of `size` actions, and a last one of fewer, which may be empty."""
        for start in range(0, len(self) + 1, size):
            yield FileActions(self.kind, self.rows.slice(start, size))

    def where(self, chosen: Sequence[bool]) -> FileActions:
        """Those for which `chosen` is true."""
        return self if all(chosen) else FileActions(self.kind, self.rows.filter(pa.array(chosen, pa.bool_())))


def key_of(path: str, vector: str | None = None) -> str:
    """What tells a logical file from all others: its path as it is spelled, and the id of its deletion vector."""
    return path if vector is None else f"{path}\0{vector}"


def key_of_action(action: Mapping[str, Any]) -> str:
    vector = action.get("deletionVector")
    if not vector:
        return key_of(str(action["path"]))
    return key_of(str(action["path"]), vector_id(vector["storageType"], vector["pathOrInlineDv"], vector.get("offset")))


def vector_id(storage_type: str, place: str, offset: int | None) -> str:
    return f"{storage_type}{place}" if offset is None else f"{storage_type}{place}@{offset}"


def from_dicts(kind: FileKind, actions: Sequence[Mapping[str, Any]]) -> FileActions:
    """From decoded JSON. Raises `pa.ArrowException` if a value is of another type than the protocol says."""
    # Field by field, which is quicker than struct by struct.
    fields = [pa.array(_values(field, actions), field.type) for field in kind.type]
    return FileActions(kind, pa.StructArray.from_arrays(fields, fields=list(kind.type)))


def from_column(kind: FileKind, column: pa.StructArray) -> FileActions:
    """From a checkpoint's column, of which fields may be missing, or be of wider or other forms of their types."""
    present = column.drop_null()
    return FileActions(kind, _conformed(present, kind.type))


def together(actions: Sequence[FileActions]) -> FileActions:
    """All of them, in order. Precondition: at least one, and all of one kind."""
    return FileActions(actions[0].kind, pa.concat_arrays([each.rows for each in actions]))


def removed_after(actions: FileActions, after_ms: int) -> FileActions:
    """The tombstones that are younger; one that does not say its age is as old as can be."""
    times = pc.fill_null(pc.struct_field(actions.rows, "deletionTimestamp"), 0)
    return FileActions(actions.kind, actions.rows.filter(pc.greater(times, after_ms)))


def _conformed(rows: pa.StructArray, wanted: pa.StructType) -> pa.StructArray:
    """The same rows with exactly the fields of `wanted`; validity is kept."""
    fields = []
    for number in range(wanted.num_fields):
        field = wanted.field(number)
        at = rows.type.get_field_index(field.name)
        if at < 0:
            fields.append(pa.nulls(len(rows), field.type))
            continue
        values = pc.struct_field(rows, at)
        if pa.types.is_struct(field.type):
            fields.append(_conformed(values, field.type))
        else:
            fields.append(values.cast(field.type))
    mask = rows.is_null() if rows.null_count else None
    return pa.StructArray.from_arrays(fields, fields=list(wanted), mask=mask)


def _values(field: pa.Field, actions: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Arrow takes maps as pairs."""
    values = [action.get(field.name) for action in actions]
    if not pa.types.is_map(field.type):
        return values
    return [None if value is None else list(value.items()) for value in values]


def _without_nulls(row: Mapping[str, Any]) -> dict[str, Any]:
    vector = row.get("deletionVector")
    found = {name: value for name, value in row.items() if value is not None}
    if vector is not None:
        found["deletionVector"] = {name: value for name, value in vector.items() if value is not None}
    return found
