"""Event times: the column that holds them, and how far a query has come in them. Pure.

Moments are microseconds since the Unix epoch, as 64 bits hold them. Dates count as their midnight in UTC, timestamps
without a zone as if they were in UTC.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone

from lakecommit.errors import InvalidInput
from lakecommit.model import DataFile
from lakecommit.schema import Field, Primitive, Struct, describe

_EVENT_TIME_TYPES = tuple(map(Primitive, ("timestamp", "timestamp_ntz", "date")))
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FIRST_MOMENT_US, _LAST_MOMENT_US = -(2**63), 2**63 - 1


def check_event_time_column(fields: Iterable[Field], name: str) -> Field:
    """The one of `fields`, the top-level columns of the data, that `eventTimeColumn` names, in any case.

    Raises `InvalidInput` if there is none, or if it holds no event times.
    """
    fields = tuple(fields)
    named = _named(fields, name)
    if named is not None and named.type in _EVENT_TIME_TYPES:
        return named
    suitable = [field.name for field in fields if field.type in _EVENT_TIME_TYPES]
    if named is not None:
        raise InvalidInput(
            f"option eventTimeColumn is {name}, a column of type {describe(named.type)}, but event times have to be "
            f"timestamp, timestamp_ntz or date; cast it, or {_another(suitable)}"
        )
    outer = _named(fields, name.partition(".")[0])
    if outer is not None and isinstance(outer.type, Struct):
        raise InvalidInput(
            f"option eventTimeColumn is {name}, which is a field inside of column {outer.name}; "
            f"select it as a column of its own, or {_another(suitable)}"
        )
    by_lower = {column.lower(): column for column in suitable}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    remedy = f"did you mean {by_lower[near[0]]}?" if near else _another(suitable)
    raise InvalidInput(f"option eventTimeColumn is {name}, but the data has no such column; {remedy}")


def epoch_watermark(files_by_task: Iterable[Iterable[DataFile]], delay_us: int) -> int | None:
    """How far an epoch has come: the newest event time of the task that is furthest behind, less the delay.

    `files_by_task` holds all files of each task. Tasks that saw no event time don't count; None where no task saw any.
    """
    newest = (max(times) for files in files_by_task if (times := _newest_times(files)))
    furthest_behind = min(newest, default=None)
    return None if furthest_behind is None else storable(furthest_behind - delay_us)


def advance(before: int | None, now: int | None) -> int | None:
    """A query's watermark after an epoch whose own is `now`: it never goes back, and stays where there is none."""
    if before is None or now is None:
        return now if before is None else before
    return max(before, now)


def as_text(moment_us: int | None) -> str | None:
    """The moment as ISO 8601 in UTC; in microseconds where it lies outside of the years that have a name."""
    if moment_us is None:
        return None
    try:
        return (_UNIX_EPOCH + timedelta(microseconds=moment_us)).isoformat()
    except OverflowError:
        return f"{moment_us} us"


def storable(moment_us: int) -> int:
    """The moment, or the nearest one that 64 bits hold: a date reaches further than a timestamp."""
    return min(max(moment_us, _FIRST_MOMENT_US), _LAST_MOMENT_US)


def _newest_times(files: Iterable[DataFile]) -> list[int]:
    return [file.event_time_max_us for file in files if file.event_time_max_us is not None]


def _named(fields: tuple[Field, ...], name: str) -> Field | None:
    return next((field for field in fields if field.name.lower() == name.lower()), None)


def _another(suitable: list[str]) -> str:
    if not suitable:
        return "leave the option out: no column of the data will do"
    return f"name {'one of ' if len(suitable) > 1 else ''}{', '.join(suitable)}"
