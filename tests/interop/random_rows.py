"""Random rows of every type, from one seed, full of the values at which readers order differently than writers do."""

from __future__ import annotations

import datetime
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

NAN, INF = float("nan"), float("inf")
_NAN_WITH_A_SIGN = struct.unpack("<d", bytes.fromhex("010000000000f8ff"))[0]
_LAST = "\U0010ffff"
_EPOCH = datetime.datetime(1970, 1, 1)
_DAY_US = 86_400_000_000
# The years 1 and 9999, around the days that the calendar of `java.sql` does not have (filters on those lose rows in
# Spark, whoever wrote the table), the epoch and what is beside it.
_DAYS = [-719_162, 2_932_896, -141_440, -141_425, 0, -1, 19_782]


@dataclass(frozen=True)
class Kind:
    """A type: its names in Delta and in Arrow, its values, and how SQL spells them."""

    name: str
    arrow: pa.DataType
    value: Callable[[random.Random], Any]
    literal: Callable[[Any], str]


def _one_of(*values: Any, other: Callable[[random.Random], Any]) -> Callable[[random.Random], Any]:
    return lambda rng: rng.choice(values) if rng.random() < 0.6 else other(rng)


def _integer(bits: int) -> Callable[[random.Random], int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return _one_of(low, high, low + 1, high - 1, 0, -1, other=lambda rng: rng.randint(low, high))


def _number(letter: str) -> Callable[[random.Random], float]:
    largest, smallest = (
        (3.4028234663852886e38, 1.401298464324817e-45) if letter == "f" else (1.7976931348623157e308, 5e-324)
    )
    size = struct.calcsize(letter)
    specials = (NAN, NAN, _NAN_WITH_A_SIGN, INF, -INF, 0.0, -0.0, largest, -largest, smallest, -smallest, 1.5, 2.0)
    return _one_of(*specials, other=lambda rng: struct.unpack(f"<{letter}", rng.randbytes(size))[0])


def _decimal(precision: int, scale: int) -> Callable[[random.Random], Decimal]:
    most = 10**precision - 1

    def exact(unscaled: int) -> Decimal:
        # Scaling would round to the precision of the context.
        return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))

    unscaled = _one_of(most, -most, 0, 1, -1, 255, 256, -256, other=lambda rng: rng.randint(-most, most))
    return lambda rng: exact(unscaled(rng))


def _text(rng: random.Random) -> str:
    letters = ["a", "b", "\x00", "\x7f", "ä", "\ud7ff", "\ue000", "\uffff", "😀", _LAST]
    if rng.random() < 0.3:
        return rng.choice(["", " ", "a", "\uffff", "😀", "a" * 31, "a" * 32, "a" * 33, "x" * 5000, _LAST * 40])
    # Bounds keep 32 characters: what differs comes before, at and after that place, in one, two and four bytes.
    start = rng.choice(["", "a", _LAST, "😀"]) * rng.choice([0, 1, 15, 16, 31, 32])
    return start + "".join(rng.choice(letters) for _ in range(rng.randint(0, 4)))


def _bytes(rng: random.Random) -> bytes:
    return rng.choice([b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"\xff" * 40]) + rng.randbytes(rng.randint(0, 2))


def _day(rng: random.Random) -> int:
    return rng.choice(_DAYS) if rng.random() < 0.6 else rng.randint(-719_162, 2_932_896)


def _moment(rng: random.Random) -> int:
    # Away from the first and the last day: sessions have time zones.
    day = min(max(_day(rng), -719_160), 2_932_894)
    return day * _DAY_US + rng.choice([0, 1, 999, 1000, 1001, -1, -999, _DAY_US - 1, rng.randrange(_DAY_US)])


def _far_moment(rng: random.Random) -> int:
    """Now and then, one that no four digits of a year can say."""
    return rng.choice([-(2**62), 2**62 + 1, 2_932_897 * _DAY_US]) if rng.random() < 0.15 else _moment(rng)


def _local_literal(micros: int) -> str:
    return f"timestamp_ntz'{(_EPOCH + datetime.timedelta(microseconds=micros)).isoformat(' ', 'microseconds')}'"


def _number_literal(name: str) -> Callable[[float], str]:
    return lambda value: f"{name}('{value!r}')"


_INTEGERS = [("byte", "tinyint", pa.int8(), 8), ("short", "smallint", pa.int16(), 16)]
_INTEGERS += [("integer", "int", pa.int32(), 32), ("long", "bigint", pa.int64(), 64)]


def _cast(type_name: str) -> Callable[[Any], str]:
    return lambda value: f"cast('{value}' as {type_name})"


def _decimal_kind(precision: int, scale: int) -> Kind:
    name = f"decimal({precision},{scale})"
    return Kind(
        name, pa.decimal128(precision, scale), _decimal(precision, scale), lambda value: f"cast('{value:f}' as {name})"
    )


KINDS = {
    kind.name: kind
    for kind in [
        *(Kind(name, arrow, _integer(bits), _cast(sql)) for name, sql, arrow, bits in _INTEGERS),
        Kind("boolean", pa.bool_(), lambda rng: rng.random() < 0.5, lambda value: str(value).lower()),
        Kind("float", pa.float32(), _number("f"), _number_literal("float")),
        Kind("double", pa.float64(), _number("d"), _number_literal("double")),
        *(_decimal_kind(*size) for size in [(9, 2), (18, 0), (20, 20), (38, 18)]),
        Kind("string", pa.string(), _text, lambda value: f"cast(x'{value.encode().hex()}' as string)"),
        Kind("binary", pa.binary(), _bytes, lambda value: f"x'{value.hex()}'"),
        Kind("date", pa.date32(), _day, lambda value: f"date_from_unix_date({value})"),
        Kind("timestamp", pa.timestamp("us", "UTC"), _far_moment, lambda value: f"timestamp_micros({value})"),
        Kind("timestamp_ntz", pa.timestamp("us"), _moment, _local_literal),
    ]
}

# A column's name stands for its type here; the paths below are what filters compare with values of a type.
_INNER = ["long", "double", "float", "string", "timestamp"]
_DEEP = ["double", "date"]
PATHS = {
    **{f"c_{name.translate(str.maketrans('(,', '__', ')'))}": kind for name, kind in KINDS.items()},
    **{f"record.{name}": KINDS[name] for name in _INNER},
    **{f"record.deep.{name}": KINDS[name] for name in _DEEP},
}
_DEEP_TYPE = pa.struct([(name, KINDS[name].arrow) for name in _DEEP])
SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        *((path, kind.arrow) for path, kind in PATHS.items() if "." not in path),
        ("record", pa.struct([*((name, KINDS[name].arrow) for name in _INNER), ("deep", _DEEP_TYPE)])),
        ("list", pa.list_(pa.float64())),
        ("dictionary", pa.map_(pa.string(), pa.float32())),
        ("records", pa.list_(pa.struct([("x", pa.float64())]))),
    ]
)


class RandomRows:
    """Rows of `SCHEMA`, and for each path the values that filters should ask for: those of the rows, and others.

    Rows come in stretches with few different values in each column, so that bounds are narrow and rows are skipped.
    """

    def __init__(self, rng: random.Random, rows: int) -> None:
        self._rng = rng
        self.known: dict[str, list[Any]] = {path: [kind.value(rng) for _ in range(3)] for path, kind in PATHS.items()}
        self._few: dict[str, list[Any]] = {}
        self.table = pa.Table.from_pylist([self._row(number) for number in range(rows)], SCHEMA)

    def _row(self, number: int) -> dict[str, Any]:
        rng = self._rng
        record = None
        if rng.random() < 0.8:
            record = {name: self._value(f"record.{name}") for name in _INNER}
            record["deep"] = None
            if rng.random() < 0.7:
                record["deep"] = {name: self._value(f"record.deep.{name}") for name in _DEEP}
        numbers = [self._value("c_double") for _ in range(rng.randint(0, 3))]
        return {
            "row": number,
            **{path: self._value(path) for path in PATHS if "." not in path},
            "record": record,
            "list": rng.choice([None, numbers]),
            "dictionary": rng.choice([None, [(key, self._value("c_float")) for key in "ab"[: rng.randint(0, 2)]]]),
            "records": rng.choice([None, [rng.choice([None, {"x": number}]) for number in numbers]]),
        }

    def _value(self, path: str) -> Any:
        rng = self._rng
        if path not in self._few or rng.random() < 0.2:
            fresh = [PATHS[path].value(rng) for _ in range(rng.choice([0, 1, 2, 2, 3]))]
            self.known[path] += fresh
            self._few[path] = [*fresh, *([None] if not fresh or rng.random() < 0.3 else [])]
        return rng.choice(self._few[path])
