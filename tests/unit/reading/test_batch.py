"""Plans of batch reads: the version that is pinned, the files that are left, and the tasks."""

from __future__ import annotations

import asyncio
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakecommit.errors import InvalidInput
from lakecommit.expressions.bound import Session
from lakecommit.options.read_parsing import parse_read_options
from lakecommit.reading.batch import balanced, pin, plan_tasks, tasks_for
from lakecommit.reading.planning.splits import Split

from ..formats.delta.fakes import metadata, protocol
from .files import ReadFile, schema_of, write


def options(path, **given):
    return parse_read_options({"path": str(path), **given}, streaming=False)


def commit(path, version, *actions):
    log = path / "_delta_log"
    log.mkdir(exist_ok=True)
    (log / f"{version:020d}.json").write_text("".join(json.dumps(each) + "\n" for each in actions))


@pytest.fixture
def table(tmp_path):
    """Version 0 has the files 0 to 9, each with ten ids, and version 1 another schema."""
    schema = schema_of(id="long")
    adds = []
    for number in range(10):
        ids = range(10 * number, 10 * number + 10)
        file = write(tmp_path, f"{number}.parquet", pa.table({"id": ids}))
        bounds = {"minValues": {"id": ids[0]}, "maxValues": {"id": ids[-1]}, "nullCount": {"id": 0}}
        add = {"path": file.path, "size": file.size_bytes, "modificationTime": number, "dataChange": True}
        adds.append({"add": {**add, "partitionValues": {}, "stats": json.dumps({"numRecords": 10, **bounds})}})
    commit(tmp_path, 0, protocol(), metadata(schema), *adds)
    commit(tmp_path, 1, metadata(schema_of(id="long", more="string")))
    return tmp_path


def planned(path, **given):
    async def plan():
        pinned = await pin(options(path, **given))
        return pinned, await plan_tasks(options(path, **given), pinned, Session())

    return asyncio.run(plan())


def test_the_newest_version_and_an_older_one(table):
    (newest, tasks), (older, _) = planned(table), planned(table, versionAsOf="0")
    assert (newest.plan.version, older.plan.version, newest.table_format) == (1, 0, "delta")
    assert [len(json.loads(each.plan.schema)["fields"]) for each in (newest, older)] == [2, 1]
    assert sorted(split.file.path for task in tasks for split in task) == [f"{number}.parquet" for number in range(10)]
    assert all(split.file.stats is None for task in tasks for split in task), "tasks need none"


def test_files_that_cannot_match_are_in_no_task(table):
    _, tasks = planned(table, where="id >= 38 and id < 41")
    assert sorted(split.file.path for task in tasks for split in task) == ["3.parquet", "4.parquet"]


def test_what_was_committed_since_is_not_read(table):
    async def plan():
        pinned = await pin(options(table))
        commit(table, 2, {"remove": {"path": "3.parquet", "dataChange": True}})
        return await plan_tasks(options(table), pinned, Session())

    assert sum(map(len, asyncio.run(plan()))) == 10


def test_a_table_that_was_made_anew_is_refused(table):
    async def plan():
        pinned = await pin(options(table))
        commit(table, 1, metadata(schema_of(id="long"), table_id="another"))
        await plan_tasks(options(table), pinned, Session())

    with pytest.raises(InvalidInput, match="was made anew since it was loaded"):
        asyncio.run(plan())


def test_no_table_and_no_such_time(table):
    with pytest.raises(InvalidInput, match="there is no table at"):
        planned(table / "none")
    with pytest.raises(InvalidInput, match="in the future"):
        planned(table, timestampAsOf="9999-01-01T00:00:00Z")
    with pytest.raises(InvalidInput, match=r"no version of .* as old as"):
        planned(table, timestampAsOf="1970-01-01T00:00:00Z")


MIB = 2**20


def of_sizes(*sizes):
    return [Split(ReadFile(str(number), size, 1), 0, size) for number, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("files", "size", "side_by_side", "tasks"),
    [
        (8, 30 * MIB, 2, 4),  # each gets two
        (8, 30 * MIB, 100, 8),  # no more than there are splits
        (8, 100, 2, 2),  # a task is worth more than opening a few small files
        (8, 100, 100, 2),
        (1, 1, 2, 1),
        (100, 100, 2, 4),
        (1_000, 128 * MIB, 2, 1_032),  # no task reads much more than a split may have
        (0, 0, 2, 0),
    ],
)
def test_tasks_are_as_many_as_are_worth_it(files, size, side_by_side, tasks):
    assert tasks_for(of_sizes(*[size] * files), 128 * MIB, side_by_side) == min(tasks, files)


@given(st.lists(st.integers(0, 128 * MIB)), st.integers(1, 64))
def test_tasks_cost_about_the_same(sizes, side_by_side):
    splits = of_sizes(*sizes)
    tasks = balanced(splits, tasks_for(splits, 128 * MIB, side_by_side))
    assert sorted(split.id for task in tasks for split in task) == sorted(split.id for split in splits)
    costs = [sum(split.cost_bytes for split in task) for task in tasks]
    assert all(costs), "each has something to do"
    assert not costs or max(costs) - min(costs) <= max(split.cost_bytes for split in splits)
