"""A few rows of every type, and a short way to what an expression makes of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lakecommit.expressions.binding import bind
from lakecommit.expressions.bound import Bound, Rows, Session
from lakecommit.expressions.parser import parse
from lakecommit.expressions.types import arrow_type
from lakecommit.schema import Array, Field, Primitive, Struct

COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "b": ("boolean", [True, False, None]),
    "i": ("integer", [1, -2, None]),
    "l": ("long", [2**62, -7, None]),
    "y": ("byte", [127, -128, None]),
    "f": ("float", [1.5, float("nan"), None]),
    "d": ("double", [-0.0, float("inf"), None]),
    "m": ("decimal(10,2)", ["1.50", "-3.25", None]),
    "n": ("decimal(38,18)", ["1.5", "-3.25", None]),
    "t": ("string", ["aß😀", "", None]),
    "a": ("date", [0, -719_163, None]),
    "p": ("timestamp", [0, 1_709_208_000_000_001, None]),
    "q": ("timestamp_ntz", [0, -1, None]),
}
_INNER = Struct((Field("x", Primitive("integer"), True), Field("odd.name", Primitive("string"), True)))
SCHEMA = Struct(
    (
        *(Field(name, Primitive(kind), True) for name, (kind, _) in COLUMNS.items()),
        Field("s", _INNER, True),
        Field("items", Array(Primitive("integer"), True), True),
    )
)
_INNER_VALUES = [{"x": 1, "odd.name": "o"}, None, {"x": None, "odd.name": None}]


def rows(zone: str | None = "America/New_York") -> Rows:
    plain = [_array(kind, values) for kind, values in COLUMNS.values()]
    inner = pa.array(_INNER_VALUES, pa.struct([("x", pa.int32()), ("odd.name", pa.string())]))
    return Rows([*plain, inner, pa.array([[1], [], None], pa.list_(pa.int32()))], 3, zone)


def bound(text: str, session: Session = Session()) -> Bound:  # noqa: B008 (frozen)
    return bind(parse(text), SCHEMA, session)


def values(text: str, session: Session = Session(), zone: str | None = "America/New_York") -> list[Any]:  # noqa: B008
    found = bound(text, session).evaluate(rows(zone))
    if pa.types.is_timestamp(found.type):
        found = found.cast(pa.int64())
    return found.to_pylist()


def _array(kind: str, given: list[Any]) -> pa.Array:
    target = arrow_type(Primitive(kind))
    if pa.types.is_decimal(target):
        return pa.array(given, pa.string()).cast(target)
    if pa.types.is_date(target):
        return pa.array(given, pa.int32()).cast(target)
    return pa.array(given, pa.int64()).cast(target) if pa.types.is_timestamp(target) else pa.array(given, target)
