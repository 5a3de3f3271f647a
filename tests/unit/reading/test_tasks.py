"""Batches of a stream as tasks: in order, each split once, and versions that follow each other together."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakecommit.errors import VersionsGone
from lakecommit.expressions.bound import Session
from lakecommit.formats.reading import MATCHED_BY, ReadPlan
from lakecommit.reading.opening import Place
from lakecommit.reading.planning.log_walk import Rows
from lakecommit.reading.planning.splits import LEAST_TASK_BYTES, OPEN_COST_BYTES, Split, splits_of
from lakecommit.reading.planning.tasks import by_task
from lakecommit.reading.rows import RowRead, read_versions

from .files import schema_of, write
from .tables import file

MIB = 2**20


def plan(version: int, schema: str = "{}") -> ReadPlan:
    return ReadPlan("t", version, schema, (), {MATCHED_BY: "name"})


def version(number: int, *sizes: int) -> Rows:
    return Rows(plan(number), [Split(file(f"{number}-{each}", size), 0, size) for each, size in enumerate(sizes)])


def test_small_versions_are_read_together():
    tasks = list(by_task([version(number, 1_000) for number in range(1_000)], 128 * MIB, 2))
    assert len(tasks) == 33  # up to 128 MiB each, with what opening a file costs
    assert [part.plan.version for task in tasks for part in task] == list(range(1_000))


def test_a_batch_that_fits_one_task_is_shared_by_all_that_run_at_a_time():
    assert len(list(by_task([version(1, *[10 * MIB] * 8)], 128 * MIB, 2))) == 4
    assert len(list(by_task([version(1, *[10 * MIB] * 8)], 128 * MIB, None))) == 8
    assert len(list(by_task([version(1, 1, 1, 1)], 128 * MIB, 2))) == 1, "a task is worth more than that"
    assert list(by_task([], 128 * MIB, 2)) == []


@given(st.lists(st.lists(st.integers(0, 64 * MIB), min_size=1)), st.one_of(st.none(), st.integers(1, 64)))
def test_every_split_is_in_one_task_in_order_and_of_its_version(sizes, side_by_side):
    rows = [version(number, *each) for number, each in enumerate(sizes)]
    tasks = list(by_task(rows, 64 * MIB, side_by_side))
    found = [(part.plan.version, split) for task in tasks for part in task for split in part.splits]
    assert found == [(each.plan.version, split) for each in rows for split in each.splits]
    for task in tasks:
        versions = [part.plan.version for part in task]
        assert versions == sorted(set(versions)) and all(part.splits for part in task)
        splits = [split for part in task for split in part.splits]
        most = max(64 * MIB, LEAST_TASK_BYTES, splits[0].size_bytes + OPEN_COST_BYTES)
        assert sum(split.cost_bytes for split in splits) <= most


def test_rows_of_versions_with_other_schemas_and_who_misses_a_file(tmp_path):
    """Each is read as its version says, and a file that is gone is missed by the version that has it."""
    narrow, wide = schema_of(id="long"), schema_of(id="long", more="string")
    files = [
        write(tmp_path, "1.parquet", pa.table({"id": [1]})),
        write(tmp_path, "2.parquet", pa.table({"id": [2], "more": ["b"]})),
    ]
    reads = [
        (RowRead(Place(str(tmp_path), {}), plan(number, schema), wide, session=Session()), splits_of(each, 2**40))
        for number, (schema, each) in enumerate(zip((narrow, wide), files, strict=True), start=7)
    ]
    parts = [(read, list(splits)) for read, splits in reads]
    found = [row for batch in read_versions(parts) for row in batch.to_pylist()]
    assert found == [{"id": 1, "more": None}, {"id": 2, "more": "b"}]
    (tmp_path / "2.parquet").unlink()
    batches = read_versions(parts)
    assert next(batches).num_rows == 1
    with pytest.raises(VersionsGone, match=r"2\.parquet of .* is gone, which version 8 needs"):
        next(batches)
