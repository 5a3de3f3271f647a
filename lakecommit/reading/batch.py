"""Plans a batch read: the version, its columns, and the files by task."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapreplace

from lakecommit.clock import Clock, SystemClock
from lakecommit.errors import InvalidInput
from lakecommit.expressions.bound import Session
from lakecommit.formats import registry
from lakecommit.formats.reading import ReadPlan
from lakecommit.formats.table_format import TableFormat
from lakecommit.options.read_declarations import ReadOptions
from lakecommit.reading.condition import condition
from lakecommit.reading.planning.splits import Split, splits_of, task_bytes
from lakecommit.reading.skipping import kept_files
from lakecommit.reading.types import readable
from lakecommit.schema import parse
from lakecommit.storage.base import Store
from lakecommit.storage.location import open_store


@dataclass(frozen=True, slots=True)
class Pinned:
    """The version that a read is of, and how its files are read."""

    table_format: str
    plan: ReadPlan


async def opened_format(options: ReadOptions, store: Store, clock: Clock) -> TableFormat:
    """The table by the format that was asked for, or else by its log."""
    if options.table_format is None:
        return await registry.format_at(store, clock=clock, new_id=_new_id, random=random.random)
    return format_by_name(options.table_format, store, clock)


def format_by_name(name: str, store: Store, clock: Clock) -> TableFormat:
    return registry.open_format(name, store, clock=clock, new_id=_new_id, random=random.random)


def _new_id() -> str:
    return str(uuid.uuid4())


async def pin(options: ReadOptions) -> Pinned:
    """The version that a read with these options is of now. Raises `InvalidInput` if there is none."""
    clock = SystemClock()
    opened = await opened_format(options, open_store(options.path, options.store_options), clock)
    version = options.version_as_of
    if options.timestamp_as_of_ms is not None:
        if options.timestamp_as_of_ms > clock.wall_ms():
            raise InvalidInput("option timestampAsOf is in the future; leave it out to read the newest version")
        version = await opened.version_at(options.timestamp_as_of_ms)
    state = await opened.at(version)
    if state is None:
        raise InvalidInput(f"there is no table at {opened.location}; check the location")
    return Pinned(opened.name, opened.read_plan(state))


async def plan_tasks(
    options: ReadOptions, pinned: Pinned, session: Session, side_by_side: int | None = None
) -> list[tuple[Split, ...]]:
    """The splits of the version by task. Raises `VersionsGone` or `InvalidInput` if the log no longer has it."""
    store, clock = open_store(options.path, options.store_options), SystemClock()
    opened = format_by_name(pinned.table_format, store, clock)
    state = await opened.at(pinned.plan.version)
    if state is None or state.table_id != pinned.plan.table_id:
        raise InvalidInput(f"the table at {opened.location} was made anew since it was loaded; load it again")
    table = readable(parse(pinned.plan.schema))
    asked = None if options.where is None else condition(options.where, table, session)
    splits: list[Split] = []
    async for page in opened.live(state):
        kept = page if asked is None else kept_files(asked, page, pinned.plan.partition_columns)
        splits += [split for file in kept for split in splits_of(file, options.split_size_bytes)]
    return balanced(splits, tasks_for(splits, options.split_size_bytes, side_by_side))


def tasks_for(splits: Sequence[Split], split_bytes: int, side_by_side: int | None) -> int:
    """How many tasks read these splits, so that none reads much more than a split may have."""
    total = sum(split.cost_bytes for split in splits)
    return min(len(splits), max(1, round(total / task_bytes(splits, split_bytes, side_by_side))))


def balanced(splits: Sequence[Split], tasks: int) -> list[tuple[Split, ...]]:
    """The splits in so many tasks, which cost about the same: large ones first, each to the task that has least. So the
    tasks with the largest splits come first, and none is left with one at the end."""
    together: list[list[Split]] = [[] for _ in range(tasks)]
    costs = [(0, number) for number in range(tasks)]
    for split in sorted(splits, key=lambda split: split.size_bytes, reverse=True):
        cost, number = costs[0]
        together[number].append(split)
        heapreplace(costs, (cost + split.cost_bytes, number))
    return [tuple(each) for each in together]
