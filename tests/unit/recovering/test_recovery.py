"""What recovery does where the store holds what nobody would expect."""

from __future__ import annotations

import asyncio
import os
import random
import uuid

import pytest

from lakecommit.clock import SystemClock
from lakecommit.errors import CorruptState, InvalidInput
from lakecommit.formats.delta.table import DeltaFormat
from lakecommit.recovering.discard import discard
from lakecommit.recovering.passed import commit_passed, left_over
from lakecommit.state import layout
from lakecommit.state.stored import stored_queries
from tests.lake import QUERY
from tests.lake.on_disk import LakeOnDisk


def new_id() -> str:
    return str(uuid.uuid4())


def delta(lake: LakeOnDisk) -> DeltaFormat:
    return DeltaFormat(lake.store, clock=SystemClock(), new_id=new_id, random=random.random)


@pytest.fixture
def lake(tmp_path) -> LakeOnDisk:
    return LakeOnDisk(tmp_path / "table", hours=2)


def test_files_that_a_vacuum_took_are_not_committed(lake):
    (path,) = lake.seal(QUERY, 0, [1])
    lake.seal(QUERY, 1, [2])
    lake.other_sink(QUERY, 2)
    (lake.root / path).unlink()
    with pytest.raises(CorruptState, match="files of epoch 0"):
        asyncio.run(commit_passed(lake.store, delta(lake), QUERY, new_id))
    assert lake.actions("add") == []


def test_a_damaged_newest_seal_goes_with_what_is_discarded(lake):
    lake.seal(QUERY, 0, [1])
    (lake.root / layout.seal_path(QUERY, 0)).write_bytes(b"x")
    lake.age(2)
    table = delta(lake)
    asyncio.run(discard(lake.store, table, QUERY, clock=SystemClock(), new_id=new_id))
    assert not asyncio.run(left_over(lake.store, table, asyncio.run(table.open()), QUERY))
    assert lake.files() == set()


def test_a_query_that_seals_epochs_without_rows_is_alive(lake):
    lake.commit(QUERY, 0, [1])
    lake.hours = 0
    lake.commit(QUERY, 1, [])
    lake.commit(QUERY, 2, [])
    for path in (lake.root / "_lakecommit").rglob("writers/*/*.avro"):
        os.utime(path, (1.6e9, 1.6e9))
    with pytest.raises(InvalidInput, match="may still be running"):
        asyncio.run(discard(lake.store, delta(lake), QUERY, clock=SystemClock(), new_id=new_id))


def test_a_user_is_found_by_any_state_of_it(lake):
    lake.seal(QUERY, 0, [1])
    listeners = lake.root / "_lakecommit/users" / QUERY / "listeners"
    listeners.mkdir()
    (listeners / "x.json").write_text("{}")

    async def found():
        return [query async for query in stored_queries(lake.store)]

    assert asyncio.run(found()) == [QUERY]


def test_epochs_that_were_passed_go_to_a_replaced_table_with_the_users_word(lake):
    lake.seal(QUERY, 0, [1])
    (_, metadata), *_ = lake.actions("metaData")
    lake.put_version({"metaData": metadata | {"id": "another"}})
    lake.other_sink(QUERY, 1)
    asyncio.run(commit_passed(lake.store, delta(lake), QUERY, new_id, "another"))
    assert lake.ids() == [1]
