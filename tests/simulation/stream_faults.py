"""Deliberate faults in how a stream plans what it reads, and in when it lets go of its plan and of its lease."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from lakecommit.leases.listed import list_leases
from lakecommit.reading.planning import log_walk, moves, planner
from lakecommit.reading.planning.following import LogFollower
from lakecommit.reading.planning.offsets import At, Begin, Offset, Phase
from lakecommit.reading.planning.plan import Plan
from lakecommit.storage.base import Found

from .faults import all_of, reading_fault

StreamPlanner = planner.StreamPlanner


def _moving(event: type, move: Any) -> Any:
    """Another entry in the table of moves, made of the one that is there."""
    real = moves.TRANSITIONS[event]
    return patch.dict(moves.TRANSITIONS, {event: lambda planning, what: move(real, planning, what)})  # type: ignore[arg-type]


@reading_fault
def plan_released_when_it_is_handed_out() -> Iterator[None]:
    def given(real: Any, planning: Any, event: Any) -> Any:
        planning, effects = real(planning, event)
        end = event.end
        if planning.plan is not None and end.phase is Phase.SNAPSHOT and end.at.after >= planning.last:
            return planning, (*effects, moves.ClosePlan(planning.plan, released=True))
        return planning, effects

    with _moving(moves.Given, given):
        yield


@reading_fault
def plan_released_by_any_acknowledgement() -> Iterator[None]:
    def acknowledged(real: Any, planning: Any, event: Any) -> Any:
        return real(replace(planning, last=""), event)

    with _moving(moves.Acknowledged, acknowledged):
        yield


@reading_fault
def plan_never_released() -> Iterator[None]:
    def acknowledged(real: Any, planning: Any, event: Any) -> Any:
        after, effects = real(planning, event)
        return replace(after, plan=planning.plan), tuple(each for each in effects if isinstance(each, moves.MoveOn))

    with _moving(moves.Acknowledged, acknowledged):
        yield


@reading_fault
def plan_rebuilt_from_the_newest_version() -> Iterator[None]:
    async def at(self: Any, version: int | None) -> Any:
        return await real(self, None)

    real = LogFollower.at
    with all_of(patch.object(LogFollower, "at", at), patch.object(planner, "check_same", lambda *_: None)):
        yield


@reading_fault
def plan_rebuilt_with_the_splits_of_this_run() -> Iterator[None]:
    async def open_plan(self: Any, written: Any) -> None:
        size = self._settings.cutting.split_bytes
        await real(self, written if written is None else replace(written, split_bytes=size))

    real = StreamPlanner._open
    with all_of(patch.object(StreamPlanner, "_open", open_plan), patch.object(planner, "check_same", lambda *_: None)):
        yield


@reading_fault
def snapshot_not_wanted() -> Iterator[None]:
    def wants(self: Any, gone: Any, new: bool | None) -> bool:
        return bool(new)

    with patch.object(StreamPlanner, "_wants", wants):
        yield


@reading_fault
def splits_behind_the_last_one_left_out() -> Iterator[None]:
    def between(self: Any, after: str, last: str) -> Any:
        return [split for split in real(self, after, last) if split.id != last]

    real = Plan.between
    with patch.object(Plan, "between", between):
        yield


@reading_fault
def what_versions_remove_not_looked_at() -> Iterator[None]:
    with patch.object(log_walk, "reads", lambda change, reading: True):
        yield


@reading_fault
def lease_moves_on_with_what_is_handed_out() -> Iterator[None]:
    def given(real: Any, planning: Any, event: Any) -> Any:
        planning, effects = real(planning, event)
        end = event.end
        if end.phase is Phase.LOG and end.version > planning.keeps:
            return replace(planning, keeps=end.version), (*effects, moves.MoveOn(end.version))
        return planning, effects

    with _moving(moves.Given, given):
        yield


def _restarting(infer: Any) -> Any:
    """A restart that takes the offset of its checkpoint for another one."""

    async def latest(self: Any, start: Any, **more: Any) -> Any:
        if self._held is None and isinstance(start, Offset):
            inferred = await infer(self, start)
            found = await real(self, inferred, **more)
            return start if found == inferred else found
        return await real(self, start, **more)

    real = StreamPlanner.latest
    return patch.object(StreamPlanner, "latest", latest)


@reading_fault
def snapshot_taken_for_read_in_a_restart() -> Iterator[None]:
    async def infer(self: Any, start: Any) -> Any:
        return start if start.phase is Phase.LOG else planner.in_log(start, At(start.plan.version))

    with _restarting(infer):
        yield


@reading_fault
def snapshot_begun_anew_where_the_lease_is_gone() -> Iterator[None]:
    async def infer(self: Any, start: Any) -> Any:
        there = {each.name.lease for each in await list_leases(self._leases._store)}
        return start if start.lease in there else Begin()

    with _restarting(infer):
        yield


@reading_fault
def missing_files_passed_over() -> Iterator[None]:
    async def get(self: Any, path: str, **more: Any) -> Any:
        found = await real(self, path, **more)
        is_data = self._process.reads_table and not path.startswith("_")
        return Found(b"", "") if found is None and is_data else found

    from .store import Handle  # noqa: PLC0415

    real = Handle.get
    with patch.object(Handle, "get", get):
        yield
