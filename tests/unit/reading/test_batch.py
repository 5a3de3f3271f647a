"""Plans of batch reads: the version that is pinned, the files that are left, and the tasks."""

from __future__ import annotations

import asyncio
import json

import pyarrow as pa
import pytest

from lakecommit.errors import InvalidInput
from lakecommit.expressions.bound import Session
from lakecommit.options.read_parsing import parse_read_options
from lakecommit.reading.batch import LEAST_TASKS, pin, plan_tasks, task_bytes
from lakecommit.reading.planning.splits import OPEN_COST_BYTES, Split

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


@pytest.mark.parametrize(("files", "size"), [(8, 2**20), (10, 2**27), (10_000, 2**27), (1, 1)])
def test_tasks_are_many_enough_and_no_larger_than_a_split(files, size):
    splits = [Split(ReadFile(str(number), size, 1), 0, size) for number in range(files)]
    limit = 128 * 2**20
    found = task_bytes(splits, limit)
    assert OPEN_COST_BYTES <= found <= limit
    assert found == limit or files * (size + OPEN_COST_BYTES) // found <= LEAST_TASKS
    assert task_bytes(splits, 1024) == 1024
