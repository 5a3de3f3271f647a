"""The offsets of a stream that reads a table, as Spark keeps them in the query's checkpoint. Pure.

    {"begin":true}                                      before everything; the first one, always
    {"format":"1","table":…,"lease":…,"start":…,"phase":…,"version":N,"at":{…},"plan":{…}}

`version` is the only number: the newest version whose rows all lie behind, -1 within the snapshot. By it a sink knows
how far it is behind (`progress.backlog`). What is not exactly as it was written is refused: rows would be lost by it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from lakecommit.errors import CorruptState, UnsupportedTable
from lakecommit.reading.planning.splits import MAX_SPLIT_BYTES, is_split_id
from lakecommit.state.lease_layout import MAX_VERSION

FORMAT = "1"
NO_VERSION = -1

_BEGIN: Mapping[str, Any] = {"begin": True}
_KEYS = ("format", "table", "lease", "start", "phase", "version", "at", "plan")
_AT = ("version", "after")
_PLAN = ("version", "splits", "digest", "splitSize")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")
_LEASE = re.compile(r"[0-9a-f]{32}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FROM = "version:"
_SHOWN = 300


class Phase(Enum):
    """Written, never inferred: that a lease or a plan is gone does not mean that nothing is left to read."""

    SNAPSHOT = "snapshot"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class Begin:
    """Nothing is read, and nothing is decided."""


@dataclass(frozen=True, slots=True)
class At:
    """How far it is planned: in `version`, up to the split `after`, with it. Empty in the snapshot: nothing yet; in the
    log: all of the version. `NO_VERSION` is before version 0, and never written."""

    version: int
    after: str = ""


@dataclass(frozen=True, slots=True)
class PlanName:
    """What tells the plan of a snapshot from all others. Also in the log files are cut by `split_bytes`."""

    version: int
    splits: int
    digest: str
    split_bytes: int


@dataclass(frozen=True, slots=True)
class Offset:
    """`first` is the version that the stream starts with; None if that is a snapshot, whose plan is `plan`. Without a
    snapshot the plan is a `PlanName` of `NO_VERSION`."""

    table_id: str
    lease: str
    first: int | None
    phase: Phase
    version: int
    at: At
    plan: PlanName

    def __post_init__(self) -> None:
        problem = _contradiction(self)
        if problem:
            raise ValueError(problem)


StreamOffset = Begin | Offset
BEGIN = Begin()


def no_plan(split_bytes: int) -> PlanName:
    """The plan of a stream that does not start with a snapshot."""
    return PlanName(NO_VERSION, 0, "", split_bytes)


def in_log(offset: Offset, at: At) -> Offset:
    """The same stream, in the log at `at`."""
    return replace(offset, phase=Phase.LOG, at=at, version=at.version - 1 if at.after else at.version)


def where_it_begins(start: StreamOffset, end: Offset) -> Offset:
    """Where in the log a batch begins that ends there."""
    if isinstance(start, Begin):
        # A snapshot without splits ends in the first batch, which may go on in the log where Spark asks for everything.
        return in_log(end, At(end.plan.version if end.first is None else end.first - 1))
    return start if start.phase is Phase.LOG else in_log(start, At(start.plan.version))


def encode(offset: StreamOffset) -> dict[str, Any]:
    if isinstance(offset, Begin):
        return dict(_BEGIN)
    plan = offset.plan
    return {
        "format": FORMAT,
        "table": offset.table_id,
        "lease": offset.lease,
        "start": Phase.SNAPSHOT.value if offset.first is None else f"{_FROM}{offset.first}",
        "phase": offset.phase.value,
        "version": offset.version,
        "at": {"version": str(offset.at.version), "after": offset.at.after},
        "plan": {
            "version": "" if plan.version == NO_VERSION else str(plan.version),
            "splits": str(plan.splits),
            "digest": plan.digest,
            "splitSize": str(plan.split_bytes),
        },
    }


def decode(value: Any) -> StreamOffset:
    """What `encode` wrote. Raises `UnsupportedTable` for an offset of a later release, `CorruptState` for all else."""
    if isinstance(value, dict) and value == _BEGIN:
        return BEGIN
    written = value.get("format") if isinstance(value, dict) else None
    if isinstance(written, str) and _NUMBER.fullmatch(written) and written != FORMAT:
        raise UnsupportedTable(
            f"the query's checkpoint has offsets of format {written}, and this release of lakecommit knows format "
            f"{FORMAT}; run the query with the release that wrote them, or a later one"
        )
    try:
        offset = _decoded(value)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise CorruptState(
            f"an offset in the query's checkpoint is damaged, or none of lakecommit's: {_shown(value)} ({error}); "
            "restore the checkpoint, or start the query with a new checkpointLocation"
        ) from None
    if encode(offset) != value:
        raise CorruptState(
            f"an offset in the query's checkpoint is not as lakecommit writes it: {_shown(value)}; restore the "
            "checkpoint, or start the query with a new checkpointLocation"
        )
    return offset


def newest(version: int) -> dict[str, Any]:
    """What the source has, as Spark reports it with a query's progress."""
    return {"version": version}


def _decoded(value: Any) -> Offset:
    fields = _exactly(value, _KEYS)
    at, plan = _exactly(fields["at"], _AT), _exactly(fields["plan"], _PLAN)
    version = fields["version"]
    if not isinstance(version, int) or isinstance(version, bool):
        raise ValueError("version is no number")
    return Offset(
        table_id=_text(fields["table"]),
        lease=_matching(_LEASE, fields["lease"]),
        first=_first(_text(fields["start"])),
        phase=Phase(fields["phase"]),
        version=version,
        at=At(_number(at["version"]), _text(at["after"])),
        plan=PlanName(
            NO_VERSION if plan["version"] == "" else _number(plan["version"]),
            _number(plan["splits"]),
            _text(plan["digest"]),
            _number(plan["splitSize"]),
        ),
    )


def _contradiction(offset: Offset) -> str:
    """What an offset cannot say; empty where it is sound."""
    at, plan, in_snapshot = offset.at, offset.plan, offset.phase is Phase.SNAPSHOT
    has_plan = offset.first is None
    sound = {
        "table is empty": bool(offset.table_id),
        "lease is none": _LEASE.fullmatch(offset.lease) is not None,
        "splitSize is out of range": 0 < plan.split_bytes <= MAX_SPLIT_BYTES,
        "at.version is out of range": NO_VERSION <= at.version <= MAX_VERSION,
        "start is out of range": has_plan or 0 <= (offset.first or 0) <= MAX_VERSION,
        "at.after is no split": at.after == "" or is_split_id(at.after),
        "plan.version does not fit start": (plan.version == NO_VERSION) != has_plan and plan.version <= MAX_VERSION,
        "plan.digest does not fit start": bool(_DIGEST.fullmatch(plan.digest)) if has_plan else plan.digest == "",
        "plan.splits does not fit start": has_plan or plan.splits == 0,
        "phase does not fit start": has_plan or not in_snapshot,
        "version does not fit phase and at": offset.version == _behind(offset),
        "at.version does not fit plan": at.version == plan.version if in_snapshot else at.version >= plan.version,
    }
    return next((problem for problem, holds in sound.items() if not holds), "")


def _behind(offset: Offset) -> int:
    if offset.phase is Phase.SNAPSHOT:
        return NO_VERSION
    return offset.at.version - 1 if offset.at.after else offset.at.version


def _first(text: str) -> int | None:
    return None if text == Phase.SNAPSHOT.value else _number(text.removeprefix(_FROM) if _FROM in text else "")


def _exactly(value: Any, keys: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, dict) or set(value) != set(keys):
        raise ValueError(f"not the keys {', '.join(keys)}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a text is none")
    return value


def _matching(pattern: re.Pattern[str], value: Any) -> str:
    if pattern.fullmatch(_text(value)) is None:
        raise ValueError(f"{value[:_SHOWN]!r} is not of its form")
    return str(value)


def _number(value: Any) -> int:
    return int(_matching(_NUMBER, value))


def _shown(value: Any) -> str:
    return json.dumps(value, default=str)[:_SHOWN]
