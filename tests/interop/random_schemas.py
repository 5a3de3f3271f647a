"""Random schemas from one seed, nested up to three deep and with odd names, and random rows of each."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import pyarrow as pa

from lakecommit.schema import Array, DataType, Field, Map, Primitive, Struct
from tests.interop.random_rows import KINDS, Kind

DEEPEST = 3
# Legal in every table; those of Parquet's own levels, of SQL, and some that mean something to a path or a pattern.
_NAMES = [
    *(
        "a",
        "b",
        "UPPER",
        "camelCase",
        "_",
        "__x",
        "1",
        "1e5",
        "-",
        "$",
        "*",
        "#",
        "@",
        "?",
        "[0]",
        "<a>",
        "|",
        "&",
        "+",
    ),
    *("list", "element", "array", "bag", "key", "value", "key_value", "entries", "item", "map", "struct"),
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


class RandomTable:
    """A schema, and rows of it as they are asked for.

    `required` is the schema as drawn, in which some columns, elements and values may not be null; `schema` is the same
    with everything nullable, as for a table that is made for a DataFrame. `known` has for each leaf the values that
    filters should ask for: those of the rows, and others.

    Rows come in stretches with few different values in each leaf, so that bounds are narrow and rows are skipped.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._kinds = cycle(rng.sample([*KINDS.values()], len(KINDS)))
        self._few: dict[tuple[str, ...], list[Any]] = {}
        columns = self._fields(rng.randint(3, 8), DEEPEST, required=True, taken={"row"})
        self.required = Struct((Field("row", Primitive("long"), True), *columns, *self._same_path(columns)))
        self.schema = Struct(tuple(_nullable(field) for field in self.required.fields))
        self.arrow = pa.schema([_arrow_field(field) for field in self.schema.fields])
        self.leaves = tuple(_leaves(self.schema.fields, ()))
        self.known: dict[tuple[str, ...], list[Any]] = {
            leaf.path: [leaf.kind.value(rng) for _ in range(3)] for leaf in self.leaves if leaf.kind
        }

    def rows(self, first: int, count: int) -> list[dict[str, Any]]:
        """As Arrow takes them: times as numbers, maps as lists of pairs."""
        return [
            {
                "row": number,
                **{field.name: self._field_value(field, (field.name,)) for field in self.required.fields[1:]},
            }
            for number in range(first, first + count)
        ]

    def arrow_table(self, rows: list[dict[str, Any]]) -> pa.Table:
        return pa.Table.from_pylist(rows, self.arrow)

    def _fields(
        self, count: int, deepest: int, *, required: bool, taken: set[str], inside: bool = False, maps: bool = True
    ) -> tuple[Field, ...]:
        """`required`: whatever is around them is never null, and they may be so, too.

        `inside` of arrays and maps Delta refuses what may not be null. In a struct that is null it is violated: no
        such field is drawn, so that the rows are taken.
        """
        rng = self._rng
        names = []
        for name in rng.sample(_NAMES, len(_NAMES)):
            if name.lower() not in taken and len(names) < count:
                taken.add(name.lower())
                names.append(name)
        nullable = [not required or rng.random() < 0.7 for _ in names]
        return tuple(
            Field(name, self._type(deepest, required=not may_be_null, inside=inside, maps=maps), may_be_null)
            for name, may_be_null in zip(names, nullable, strict=True)
        )

    def _same_path(self, columns: tuple[Field, ...]) -> Iterator[Field]:
        """Now and then a column whose name reads like the path to a field of another one."""
        taken = {field.name.lower() for field in columns}
        for field in columns:
            if isinstance(field.type, Struct) and self._rng.random() < 0.3:
                name = f"{field.name}.{self._rng.choice(field.type.fields).name}"
                if name.lower() not in taken:
                    yield Field(name, self._type(1, required=False, inside=False), True)
                    return

    def _type(self, deepest: int, *, required: bool, inside: bool, maps: bool = True) -> DataType:
        rng = self._rng
        forms = ["plain", "plain", "struct", "struct", "array", *(["map"] if maps else [])]
        form = rng.choice(forms) if deepest else "plain"
        if form == "struct":
            count = rng.randint(1, 3)
            return Struct(self._fields(count, deepest - 1, required=required, taken=set(), inside=inside, maps=maps))
        if form == "array":
            element = self._type(deepest - 1, required=False, inside=True, maps=maps)
            return Array(element, rng.random() < 0.8 or inside)
        if form == "map":
            # Spark refuses keys with a map in them.
            deep_key = deepest - 1 if rng.random() < 0.2 else 0
            key = self._type(deep_key, required=False, inside=True, maps=False)
            value = self._type(deepest - 1, required=False, inside=True)
            return Map(key, value, rng.random() < 0.8 or inside)
        return Primitive(next(self._kinds).name)

    def _field_value(self, field: Field, path: tuple[str, ...]) -> Any:
        return self._value(field.type, path, nullable=field.nullable)

    def _value(self, data_type: DataType, path: tuple[str, ...], *, nullable: bool) -> Any:
        rng = self._rng
        if nullable and rng.random() < 0.15:
            return None
        match data_type:
            case Struct(fields):
                return {field.name: self._field_value(field, (*path, field.name)) for field in fields}
            case Array(element, contains_null):
                inner = (*path, "element")
                return [self._value(element, inner, nullable=contains_null) for _ in range(rng.choice([0, 1, 2, 3]))]
            case Map(key, value, contains_null):
                keys = [self._value(key, (*path, "key"), nullable=False) for _ in range(rng.choice([0, 1, 2, 3]))]
                # Spark takes keys for the same that Python does not.
                different = {_identity(each): each for each in keys}.values()
                return [(each, self._value(value, (*path, "value"), nullable=contains_null)) for each in different]
            case Primitive(name):
                return self._plain(KINDS[name], path)
        raise AssertionError(data_type)

    def _plain(self, kind: Kind, path: tuple[str, ...]) -> Any:
        rng = self._rng
        if path not in self._few or rng.random() < 0.2:
            self._few[path] = [kind.value(rng) for _ in range(rng.randint(1, 3))]
            if path in self.known:
                self.known[path] += self._few[path]
        return rng.choice(self._few[path])


def _identity(value: Any) -> str:
    if isinstance(value, dict):
        return repr({name: _identity(each) for name, each in value.items()})
    if isinstance(value, list):
        return repr([_identity(each) for each in value])
    if isinstance(value, tuple):
        return repr(tuple(map(_identity, value)))
    return repr(value + 0.0) if isinstance(value, float) else repr(value)


def _nullable(field: Field) -> Field:
    return Field(field.name, _nullable_type(field.type), True)


def _nullable_type(data_type: DataType) -> DataType:
    match data_type:
        case Struct(fields):
            return Struct(tuple(map(_nullable, fields)))
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


def _arrow_type(data_type: DataType) -> pa.DataType:
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
