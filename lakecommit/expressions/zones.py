"""Local clocks and moments, in a session's time zone.

Rules come from Python's time zone database. Kernels of Arrow are not used: they end with the year 2037. Years outside
of Python's calendar have the rules of years like them. Of zones that others were merged with, builds of the database
differ for the time before 1980: that is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from importlib import resources
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from lakecommit.expressions.calendar import floor_divide
from lakecommit.expressions.errors import EvaluationFailed, Unsupported

_FIXED = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")
_UTC = frozenset({"UTC", "GMT", "UT", "Z", "Etc/UTC", "Etc/GMT", "Etc/UCT", "UCT", "Zulu", "Universal", "Greenwich"})
# Rules hold for spans of this length, apart from those in which they change.
_SPAN_US = 900_000_000
_CYCLE_US = 146_097 * 86_400_000_000
_SETTLED_US = 315_532_800_000_000
_TABLE = "zone1970.tab"
_EPOCH = datetime(1970, 1, 1)
# From the year 2 to the year 9998, so that no offset leads out of Python's calendar.
_FIRST_US, _LAST_US = -62_104_060_800_000_000, 253_339_228_800_000_000


@lru_cache(maxsize=16)
def zone_named(name: str) -> tzinfo:
    """Raises `Unsupported` for a zone whose rules are not known."""
    if name in _UTC:
        return timezone.utc
    if (match := _FIXED.fullmatch(name)) is not None:
        offset = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        return timezone(-offset if match[1] == "-" else offset)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise Unsupported(f"the time zone {name}, whose rules are not known here") from None


def to_local(micros: pa.Array, zone: str) -> pa.Array:
    """What a clock there shows at moments in UTC; both as microseconds since 1970."""
    found = zone_named(zone)
    return pc.add(micros, _offsets(micros, lambda moment: _offset_at(moment, found), found))


def to_moments(local: pa.Array, zone: str, near: pa.Array | None = None) -> pa.Array:
    """The moments at which a clock there shows `local`.

    A time that comes twice is the first of both, unless the second is as far from UTC as the one of `near`; a time that
    is left out is as much later as was left out.
    """
    found = zone_named(zone)
    moments = pc.subtract(local, _offsets(local, lambda micros: _offset_of_clock(micros, found), found))
    if near is None:
        return moments
    kept = pc.subtract(local, pc.subtract(to_local(near, zone), near))
    return pc.if_else(pc.equal(to_local(kept, zone), local), kept, moments)


def _offsets(micros: pa.Array, offset: Callable[[int], int], zone: tzinfo) -> pa.Array:
    if isinstance(zone, timezone):
        return pa.repeat(pa.scalar(offset(0), pa.int64()), len(micros))
    if isinstance(zone, ZoneInfo) and zone.key not in _settled_zones() and pc.any(pc.less(micros, _SETTLED_US)).as_py():
        raise EvaluationFailed(f"a time before 1980 in the zone {zone.key}, for which time zone databases differ")
    spans = floor_divide(micros, _SPAN_US).dictionary_encode()
    begins = [None if span is None else span * _SPAN_US for span in spans.dictionary.to_pylist()]
    pairs = [(0, 0) if begin is None else (offset(begin), offset(begin + _SPAN_US)) for begin in begins]
    if all(first == last for first, last in pairs):
        return pa.array([first for first, _ in pairs], pa.int64()).take(spans.indices)
    return pa.array([None if value is None else offset(value) for value in micros.to_pylist()], pa.int64())


@lru_cache(maxsize=1)
def _settled_zones() -> frozenset[str]:
    """Zones of which all builds of the database have the same rules, back to the first."""
    tables = [Path(directory, _TABLE) for directory in TZPATH]
    with suppress(ModuleNotFoundError):
        tables.append(Path(str(resources.files("tzdata") / "zoneinfo" / _TABLE)))
    for table in tables:
        if table.is_file():
            lines = table.read_text(encoding="utf-8").splitlines()
            return frozenset(line.split("\t")[2] for line in lines if line and not line.startswith("#"))
    return frozenset()


def _offset_at(micros: int, zone: tzinfo) -> int:
    moment = (_EPOCH + timedelta(microseconds=_like(micros))).replace(tzinfo=timezone.utc)
    return _micros(moment.astimezone(zone).utcoffset())


def _offset_of_clock(micros: int, zone: tzinfo) -> int:
    return _micros((_EPOCH + timedelta(microseconds=_like(micros))).replace(tzinfo=zone).utcoffset())


def _like(micros: int) -> int:
    if micros > _LAST_US:
        return micros - ((micros - _LAST_US) // _CYCLE_US + 1) * _CYCLE_US
    if micros < _FIRST_US:
        return micros + ((_FIRST_US - micros) // _CYCLE_US + 1) * _CYCLE_US
    return micros


def _micros(offset: timedelta | None) -> int:
    return 0 if offset is None else offset // timedelta(microseconds=1)
