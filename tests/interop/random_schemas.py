"""Random schemas, nested up to three deep and with odd names, and what else is known of a schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from lakecommit.schema import Array, DataType, Field, Map, Primitive, Struct
from tests.interop.random_values import KINDS, Kind, chance, pick

DEEPEST = 3
# Legal in every table; those of Parquet's own levels, of SQL, and some that mean something to a path or a pattern.
NAMES = [
    *("a", "b", "UPPER", "camelCase", "_", "__x", "1", "1e5", "-", "$", "*", "#", "@", "?", "[0]", "<a>", "|"),
    *("&", "+", "list", "element", "array", "bag", "key", "value", "key_value", "entries", "item", "map", "struct"),
    *("select", "null", "true", "timestamp", "numRecords", "minValues", "nullCount"),
    *("a.b", ".", "b.", ".a", "a/b", "../a", "a:b", "%41", "x`y", "``", "it's", '"quoted"', "back\\slash", "\\u0041"),
    *("ä", "a\u0308", "ß", "İ", "名前", "😀", "\u00a0", "\u200b", "\x01", "\x7f", "n" * 200),
]


@dataclass(frozen=True)
class Leaf:
    """What statistics are about, outside of arrays and maps; `kind` is None for an array or a map itself."""

    path: tuple[str, ...]
    kind: Kind | None

    @property
    def sql(self) -> str:
        return ".".join("`" + name.replace("`", "``") + "`" for name in self.path)


@st.composite
def schemas(draw: DrawFn) -> Struct:
    """Some columns, elements and values may not be null. Its first column, `row`, has the numbers of the rows."""
    drawing = _Schemas(draw)
    columns = drawing.fields(pick(draw, [3, 4, 5, 6, 7, 8]), DEEPEST, required=True)
    return Struct((Field("row", Primitive("long"), True), *columns, *drawing.same_path(columns)))


def nullable(schema: Struct) -> Struct:
    """The same with everything nullable, as for a table that is made for a DataFrame."""
    return Struct(tuple(map(_nullable, schema.fields)))


def leaves(schema: Struct) -> tuple[Leaf, ...]:
    return tuple(_leaves(schema.fields, ()))


def arrow_schema(schema: Struct) -> pa.Schema:
    return pa.schema([_arrow_field(field) for field in schema.fields])


class _Schemas:
    def __init__(self, draw: DrawFn) -> None:
        self._draw = draw
        self._kinds: list[str] = []

    def fields(
        self, count: int, deepest: int, *, required: bool, inside: bool = False, maps: bool = True
    ) -> tuple[Field, ...]:
        """`required`: whatever is around them is never null, and they may be so, too.

        `inside` of arrays and maps Delta refuses what may not be null. In a struct that is null it is violated: no
        such field is drawn, so that the rows are taken.
        """
        names = self._draw(st.lists(st.sampled_from(NAMES), min_size=count, max_size=count, unique_by=str.lower))
        return tuple(self._field(name, deepest, required=required, inside=inside, maps=maps) for name in names)

    def same_path(self, columns: tuple[Field, ...]) -> Iterator[Field]:
        """Now and then a column whose name reads like the path to a field of another one."""
        taken = {field.name.lower() for field in columns}
        for field in columns:
            if isinstance(field.type, Struct) and chance(self._draw, 30):
                name = f"{field.name}.{pick(self._draw, field.type.fields).name}"
                if name.lower() not in taken:
                    yield Field(name, self._type(1, required=False, inside=False), True)
                    return

    def _field(self, name: str, deepest: int, *, required: bool, inside: bool, maps: bool) -> Field:
        may_be_null = not (required and chance(self._draw, 30))
        return Field(name, self._type(deepest, required=not may_be_null, inside=inside, maps=maps), may_be_null)

    def _type(self, deepest: int, *, required: bool, inside: bool, maps: bool = True) -> DataType:
        forms = ["plain", "plain", "struct", "struct", "array", *(["map"] if maps else [])]
        form = pick(self._draw, forms) if deepest else "plain"
        if form == "struct":
            count = pick(self._draw, [1, 2, 3])
            return Struct(self.fields(count, deepest - 1, required=required, inside=inside, maps=maps))
        if form == "array":
            element = self._type(deepest - 1, required=False, inside=True, maps=maps)
            return Array(element, inside or not chance(self._draw, 20))
        if form == "map":
            # Spark refuses keys with a map in them.
            deep_key = deepest - 1 if chance(self._draw, 20) else 0
            key = self._type(deep_key, required=False, inside=True, maps=False)
            value = self._type(deepest - 1, required=False, inside=True)
            return Map(key, value, inside or not chance(self._draw, 20))
        return Primitive(self._kind())

    def _kind(self) -> str:
        """Each has its turn before one comes again, so that most schemas have most of them."""
        self._kinds = self._kinds or [*KINDS]
        kind = pick(self._draw, self._kinds)
        self._kinds.remove(kind)
        return kind


def _nullable(field: Field) -> Field:
    return Field(field.name, _nullable_type(field.type), True)


def _nullable_type(data_type: DataType) -> DataType:
    match data_type:
        case Struct():
            return nullable(data_type)
        case Array(element, _):
            return Array(_nullable_type(element), True)
        case Map(key, value, _):
            return Map(_nullable_type(key), _nullable_type(value), True)
    return data_type


def _leaves(fields: tuple[Field, ...], prefix: tuple[str, ...]) -> Iterator[Leaf]:
    for field in fields:
        path = (*prefix, field.name)
        match field.type:
            case Struct(inner):
                yield from _leaves(inner, path)
            case Primitive(name):
                yield Leaf(path, KINDS[name])
            case _:
                yield Leaf(path, None)


def _arrow_field(field: Field) -> pa.Field:
    return pa.field(field.name, _arrow_type(field.type))


def _arrow_type(data_type: DataType) -> Any:
    match data_type:
        case Struct(fields):
            return pa.struct(map(_arrow_field, fields))
        case Array(element, _):
            return pa.list_(_arrow_type(element))
        case Map(key, value, _):
            return pa.map_(_arrow_type(key), _arrow_type(value))
        case Primitive(name):
            return KINDS[name].arrow
    raise AssertionError(data_type)
