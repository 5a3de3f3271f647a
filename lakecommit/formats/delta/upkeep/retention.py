"""How long a Delta table keeps what is gone: tombstones, marks of applications, and its log. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakecommit.formats.delta.state import Metadata

RETENTION_OF_FILES = "delta.deletedFileRetentionDuration"
DAY_MS = 24 * 60 * 60 * 1000
_PART = re.compile(r"(\d+)\s+(nanosecond|microsecond|millisecond|second|minute|hour|day|week)s?\s*", re.I)
_DURATION = re.compile(rf"(?:interval\s+)?((?:{_PART.pattern})+)", re.I)
_PER_SECOND = {"nanosecond": 1_000_000_000, "microsecond": 1_000_000, "millisecond": 1000}
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}


@dataclass(frozen=True, slots=True)
class Retention:
    """Milliseconds; None for ever, also where the property cannot be understood."""

    tombstones_ms: int | None
    marks_ms: int | None
    log_ms: int | None

    def removed_after_ms(self, now_ms: int) -> int:
        """A tombstone that is not younger has expired."""
        return -1 if self.tombstones_ms is None else now_ms - self.tombstones_ms

    def has_expired(self, txn: Mapping[str, Any], now_ms: int) -> bool:
        """Whether a mark has. One that does not say when it was set never does."""
        set_ms = txn.get("lastUpdated")
        return self.marks_ms is not None and set_ms is not None and int(set_ms) <= now_ms - self.marks_ms

    def log_before_ms(self, now_ms: int) -> int | None:
        """What was committed later stays in the log: midnight, as Delta has it, so that a day has one such time."""
        if self.log_ms is None:
            return None
        return (now_ms - self.log_ms) // DAY_MS * DAY_MS


def retention_of(metadata: Metadata) -> Retention:
    return Retention(
        tombstones_ms=_duration(metadata, RETENTION_OF_FILES, 7 * DAY_MS),
        marks_ms=_duration(metadata, "delta.setTransactionRetentionDuration", None),
        log_ms=_duration(metadata, "delta.logRetentionDuration", 30 * DAY_MS),
    )


def duration_ms(text: str) -> int | None:
    """Milliseconds of `interval 1 week`, `7 days` or `1 hour 30 minutes`; None where it is something else."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        return None
    return sum(_part_ms(int(number), unit.lower()) for number, unit in _PART.findall(match[1]))


def _part_ms(number: int, unit: str) -> int:
    return number * _SECONDS[unit] * 1000 if unit in _SECONDS else number * 1000 // _PER_SECOND[unit]


def _duration(metadata: Metadata, name: str, default_ms: int | None) -> int | None:
    value = metadata.configuration.get(name)
    return default_ms if value is None else duration_ms(value)
