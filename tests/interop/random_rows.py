"""Random rows of a schema, and a schema with every type whose columns have plain names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from lakecommit.schema import Array, DataType, Field, Map, Primitive, Struct, to_json
from tests.interop.random_schemas import arrow_schema, nullable
from tests.interop.random_values import KINDS, kept, pick

_INNER = ["long", "double", "float", "string", "timestamp"]
_DEEP = ["double", "date"]
# A column's name stands for its type here; the paths are what filters compare with values of a type.
PATHS = {
    **{f"c_{name.translate(str.maketrans('(,', '__', ')'))}": kind for name, kind in KINDS.items()},
    **{f"record.{name}": KINDS[name] for name in _INNER},
    **{f"record.deep.{name}": KINDS[name] for name in _DEEP},
}


def _struct(**types: DataType) -> Struct:
    return Struct(tuple(Field(name, data_type, True) for name, data_type in types.items()))


SCHEMA = _struct(
    row=Primitive("long"),
    **{path: Primitive(kind.name) for path, kind in PATHS.items() if "." not in path},
    record=_struct(
        **{name: Primitive(name) for name in _INNER}, deep=_struct(**{name: Primitive(name) for name in _DEEP})
    ),
    list=Array(Primitive("double"), True),
    dictionary=Map(Primitive("string"), Primitive("float"), True),
    records=Array(_struct(x=Primitive("double")), True),
)

Path = tuple[str, ...]


@dataclass(frozen=True)
class RandomRows:
    """Rows as Arrow takes them: times as numbers, maps as lists of pairs.

    `known` has for each place at which there are plain values those that filters should ask for: those of the rows,
    and others. Of a place in an array the path goes on with "element", in a map with "key" or "value".
    """

    schema: Struct
    rows: list[dict[str, Any]]
    known: dict[Path, list[Any]]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """As Hypothesis shows them: a line for each row."""
        printer.text("\n".join([to_json(self.schema), *map(repr, self.rows), ""]))

    def of_columns(self, schema: Struct) -> RandomRows:
        """Only these columns of them."""
        names = {field.name for field in schema.fields}
        rows = [{name: value for name, value in row.items() if name in names} for row in self.rows]
        return RandomRows(schema, rows, {path: values for path, values in self.known.items() if path[0] in names})

    @property
    def arrow(self) -> pa.Table:
        return arrow_table(self.schema, self.rows)


def arrow_table(schema: Struct, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, arrow_schema(nullable(schema)))


@st.composite
def rows_of(draw: DrawFn, schema: Struct, first: int = 0, stretches: int = 6) -> RandomRows:
    """Rows from number `first` on, in so many stretches; six have some 25 rows."""
    places = [*_places(schema, ())]
    known = {path: draw(_values(kind, 2)) for path, kind, _ in places if kind is not None}
    rows: list[dict[str, Any]] = []
    for _ in range(stretches):
        for values in draw(_stretches(schema, places, known)):
            rows.append({"row": first + len(rows), **values})
    return RandomRows(schema, rows, known)


@st.composite
def _stretches(
    draw: DrawFn, schema: Struct, places: list[tuple[Path, str | None, bool]], known: dict[Path, list[Any]]
) -> list[dict[str, Any]]:
    stretch = _Stretch(draw, places, known)
    rows = [draw(_rows(schema, stretch)) for _ in range(pick(draw, [3, 4, 5, 6]))]
    return [row for row in rows if row is not None]


@st.composite
def _rows(draw: DrawFn, schema: Struct, stretch: _Stretch) -> dict[str, Any] | None:
    row = {field.name: stretch.value(draw, field.type, (field.name,)) for field in schema.fields[1:]}
    return row if kept(draw) else None


@cache
def _values(kind: str, least: int) -> SearchStrategy[list[Any]]:
    return st.lists(KINDS[kind].values, min_size=least, max_size=3)


class _Stretch:
    """Rows beside each other, which have few different values in each place: so bounds are narrow, and rows are
    skipped."""

    def __init__(self, draw: DrawFn, places: list[tuple[Path, str | None, bool]], known: dict[Path, list[Any]]) -> None:
        # What may be there: of an array, a map or a struct, whether it is.
        self._few = {}
        for path, kind, may_be_null in places:
            there = [True, True, True]
            if kind is not None:
                there = draw(_values(kind, 1))
                known[path] += there
            nulls = pick(draw, ["none", "some", "some", "none", "all"]) if may_be_null else "none"
            self._few[path] = {"none": there, "some": [*there, None], "all": [None]}[nulls]

    def value(self, draw: DrawFn, data_type: DataType, path: Path) -> Any:
        few = self._few[path]
        drawn = pick(draw, few) if None in few or isinstance(data_type, Primitive) else True
        if drawn is None:
            return None
        match data_type:
            case Struct(fields):
                return {field.name: self.value(draw, field.type, (*path, field.name)) for field in fields}
            case Array(element, _):
                return [self.value(draw, element, (*path, "element")) for _ in range(_length(draw))]
            case Map(key, value, _):
                keys = [self.value(draw, key, (*path, "key")) for _ in range(_length(draw))]
                # Spark takes keys for the same that Python does not.
                different = {_identity(each): each for each in keys}.values()
                return [(each, self.value(draw, value, (*path, "value"))) for each in different]
        return drawn


def _length(draw: DrawFn) -> int:
    return pick(draw, [0, 1, 2, 3])


def _places(data_type: DataType, path: Path, *, may_be_null: bool = False) -> Iterator[tuple[Path, str | None, bool]]:
    """All of a type but the numbers of rows: where it is, the kind of what is there, and whether that may be null."""
    if path == ("row",):
        return
    if path:
        yield path, data_type.name if isinstance(data_type, Primitive) else None, may_be_null
    match data_type:
        case Struct(fields):
            for field in fields:
                yield from _places(field.type, (*path, field.name), may_be_null=field.nullable)
        case Array(element, contains_null):
            yield from _places(element, (*path, "element"), may_be_null=contains_null)
        case Map(key, value, contains_null):
            yield from _places(key, (*path, "key"))
            yield from _places(value, (*path, "value"), may_be_null=contains_null)


def _identity(value: Any) -> str:
    if isinstance(value, dict):
        return repr({name: _identity(each) for name, each in value.items()})
    if isinstance(value, list):
        return repr([_identity(each) for each in value])
    if isinstance(value, tuple):
        return repr(tuple(map(_identity, value)))
    return repr(value + 0.0) if isinstance(value, float) else repr(value)
