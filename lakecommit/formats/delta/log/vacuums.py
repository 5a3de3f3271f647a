"""What a Delta log says of vacuums. Pure.

delta-spark and delta-rs list the files, then commit `VACUUM START`, delete, and commit `VACUUM END`. So of what no
version names only files that are older than START, by as much as the vacuum retains, are ever deleted, and none after
END. On S3 delta-spark commits neither, unless `spark.databricks.delta.vacuum.logging.enabled` is set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lakecommit.formats.evidence import Vacuums

# Those that died never end; what is known of them is bounded.
MOST_UNDER_WAY = 8


def after_commit(vacuums: Vacuums, info: Mapping[str, Any] | None) -> Vacuums:
    """What is known of vacuums once a version with this `commitInfo` was read, too."""
    operation = (info or {}).get("operation")
    if info is None or operation not in ("VACUUM START", "VACUUM END"):
        return vacuums
    if operation == "VACUUM END":
        # It does not say whose: as long as one is under way, the youngest that may be it counts.
        return replace(vacuums, begun_ms=vacuums.begun_ms[1:])
    begun_ms = committed_ms(info)
    if begun_ms is None:
        return vacuums
    vacuums = replace(vacuums, begun_ms=(*vacuums.begun_ms, begun_ms)[-MOST_UNDER_WAY:])
    if _number((info.get("operationMetrics") or {}).get("numFilesToDelete")) == 0:
        return vacuums
    parameters = info.get("operationParameters") or {}
    retained_ms = _number(parameters.get("specifiedRetentionMillis"))
    if retained_ms is None:
        retained_ms = _number(parameters.get("defaultRetentionMillis"))
    # Where it does not say, it may have retained nothing.
    before_ms = begun_ms - (retained_ms or 0)
    return replace(vacuums, before_ms=_later(vacuums.before_ms, before_ms))


def is_vacuum(info: Mapping[str, Any]) -> bool:
    """Whether a version is of a vacuum, whatever it says of it: other engines have operations of their own."""
    return str(info.get("operation") or "").upper().startswith("VACUUM")


def both(newest: Vacuums, before: Vacuums) -> Vacuums:
    """What is known of a log that was opened anew by who has read a part of it before."""
    return Vacuums(
        _later(newest.before_ms, before.before_ms),
        newest.begun_ms or before.begun_ms,
        newest.unseen_ms,
    )


def committed_ms(info: Mapping[str, Any] | None) -> int | None:
    """When a version was committed, by the clock of who did it."""
    found = _number((info or {}).get("inCommitTimestamp"))
    return _number((info or {}).get("timestamp")) if found is None else found


def _later(one: int | None, other: int | None) -> int | None:
    return max((each for each in (one, other) if each is not None), default=None)


def _number(value: object) -> int | None:
    """delta-spark writes numbers as numbers or as text, by turns; delta-rs always the other way."""
    try:
        return None if value is None else int(str(value))
    except ValueError:
        return None
