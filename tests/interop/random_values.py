"""Every type, and strategies for its values: full of those at which readers order differently than writers do.

Only numbers below a hundred are drawn, here and wherever something random is made of these values. Among larger ones,
and among texts, Hypothesis tries those that stand in the modules which happen to be loaded, so that the same seed would
draw something else after every change of the product.
"""

from __future__ import annotations

import datetime
import hashlib
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

T = TypeVar("T")

NAN, INF = float("nan"), float("inf")
NAN_WITH_A_SIGN = struct.unpack("<d", bytes.fromhex("010000000000f8ff"))[0]
LAST = "\U0010ffff"
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
DAY_US = 86_400_000_000
# Away from the first and the last day: sessions have time zones.
FIRST_MOMENT, LAST_MOMENT = (FIRST_DAY + 2) * DAY_US, (LAST_DAY - 1) * DAY_US - 1
# Those that no four digits of a year can say.
FAR_MOMENTS = [(LAST_DAY + 1) * DAY_US, 2**62 + 1, -(2**62)]
_EPOCH = datetime.datetime(1970, 1, 1)
# The epoch and what is beside it, the years 1 and 9999, around the days that the calendar of `java.sql` does not have
# (filters on those lose rows in Spark, whoever wrote the table).
_DAYS = [0, -1, 19_782, FIRST_DAY, LAST_DAY, -141_440, -141_425]


@dataclass(frozen=True)
class Kind:
    """A type: its names in Delta and in Arrow, its values, and how SQL spells them."""

    name: str
    arrow: pa.DataType
    values: SearchStrategy[Any]
    literal: Callable[[Any], str]


def pick(draw: DrawFn, options: Sequence[T]) -> T:
    """One of at most a hundred; the first is the simplest. Like `sampled_from`, many times faster."""
    return options[draw(_up_to(len(options) - 1))]


def chance(draw: DrawFn, percent: int) -> bool:
    """Simplest is what does not happen."""
    return draw(_up_to(99)) >= 100 - percent


def kept(draw: DrawFn) -> bool:
    """Whether what was drawn just before is kept: nearly always. Simplest is to leave it out, so that Hypothesis finds
    out what a failure can do without by one number for each row, column or filter."""
    return draw(_up_to(29)) > 0


@cache
def _up_to(last: int) -> SearchStrategy[int]:
    assert last < 100
    return st.integers(0, last)


def _bits(numbers: tuple[int, int]) -> int:
    return int.from_bytes(hashlib.sha256(bytes(numbers)).digest()[:16], "big")


# 128 bits, in ten thousand ways.
_WIDE = st.tuples(_up_to(99), _up_to(99)).map(_bits)


def _mostly(simple: Sequence[Any], other: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return st.one_of(st.sampled_from(simple), st.sampled_from(simple), other)


def _integers(bits: int) -> SearchStrategy[int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return _mostly([0, -1, low, high, low + 1, high - 1], _WIDE.map(lambda wide: low + wide % 2**bits))


def _numbers(letter: str) -> SearchStrategy[float]:
    largest, smallest = (
        (3.4028234663852886e38, 1.401298464324817e-45) if letter == "f" else (1.7976931348623157e308, 5e-324)
    )
    size = struct.calcsize(letter)
    specials = [1.5, 2.0, 0.0, -0.0, largest, -largest, smallest, -smallest, INF, -INF, NAN, NAN, NAN_WITH_A_SIGN]
    return _mostly(specials, _WIDE.map(lambda wide: struct.unpack(f"<{letter}", wide.to_bytes(16, "big")[:size])[0]))


def _decimals(precision: int, scale: int) -> SearchStrategy[Decimal]:
    most = 10**precision - 1

    def exact(unscaled: int) -> Decimal:
        # Scaling would round to the precision of the context.
        return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))

    return _mostly([0, 1, -1, 255, 256, -256, most, -most], _WIDE.map(lambda wide: wide % (2 * most + 1) - most)).map(
        exact
    )


_LETTERS = ["a", "b", "\x00", "\x7f", "ä", "\ud7ff", "\ue000", "\uffff", "😀", LAST]
# Bounds keep 32 characters: what differs comes before, at and after that place, in one, two and four bytes.
_TEXTS = st.one_of(
    st.sampled_from(["", " ", "a", "\uffff", "😀", "a" * 31, "a" * 32, "a" * 33, "x" * 5000, "ä" * 2500, LAST * 40]),
    *[
        st.builds(
            lambda start, times, rest: start * times + "".join(rest),
            st.sampled_from(["", "a", LAST, "😀"]),
            st.sampled_from([0, 1, 15, 16, 31, 32]),
            st.lists(st.sampled_from(_LETTERS), max_size=4),
        )
    ]
    * 2,
)
_BYTES = st.builds(
    lambda start, wide, length: start + wide.to_bytes(16, "big")[:length],
    st.sampled_from([b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"\xff" * 40]),
    _WIDE,
    st.integers(0, 2),
)
_SOME_DAYS = _mostly(_DAYS, _WIDE.map(lambda wide: FIRST_DAY + wide % (LAST_DAY - FIRST_DAY + 1)))
_TIMES = _mostly([0, 1, 999, 1000, 1001, -1, -999, DAY_US - 1], _WIDE.map(lambda wide: wide % DAY_US))
_MOMENTS = _mostly(
    [0, -1, FIRST_MOMENT, LAST_MOMENT],
    st.builds(
        lambda day, time: min(max(day * DAY_US + time, FIRST_MOMENT), LAST_MOMENT),
        _SOME_DAYS,
        _TIMES,
    ),
)


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
        name, pa.decimal128(precision, scale), _decimals(precision, scale), lambda value: f"cast('{value:f}' as {name})"
    )


KINDS = {
    kind.name: kind
    for kind in [
        *(Kind(name, arrow, _integers(bits), _cast(sql)) for name, sql, arrow, bits in _INTEGERS),
        Kind("boolean", pa.bool_(), st.booleans(), lambda value: str(value).lower()),
        Kind("float", pa.float32(), _numbers("f"), _number_literal("float")),
        Kind("double", pa.float64(), _numbers("d"), _number_literal("double")),
        *(_decimal_kind(*size) for size in [(9, 2), (18, 0), (20, 20), (38, 18)]),
        Kind("string", pa.string(), _TEXTS, lambda value: f"cast(x'{value.encode().hex()}' as string)"),
        Kind("binary", pa.binary(), _BYTES, lambda value: f"x'{value.hex()}'"),
        Kind("date", pa.date32(), _SOME_DAYS, lambda value: f"date_from_unix_date({value})"),
        Kind(
            "timestamp",
            pa.timestamp("us", "UTC"),
            st.one_of(*[_MOMENTS] * 6, st.sampled_from(FAR_MOMENTS)),
            lambda value: f"timestamp_micros({value})",
        ),
        Kind("timestamp_ntz", pa.timestamp("us"), _MOMENTS, _local_literal),
    ]
}
