"""Tables of one process share one limit: whatever the others hold counts, and who has most makes room."""

from __future__ import annotations

import pytest

from lakecommit.errors import LocalDiskFailed
from lakecommit.model import Epoch
from lakecommit.progress.pending import PendingFiles, PendingMemory
from tests.unit.progress.tools import OTHER, QUERY, Disk, add, manifests_of

ONE_EPOCH = 3 * 100 + 300
LIMIT = 10 * ONE_EPOCH


def two_tables(disk: Disk) -> tuple[PendingMemory, PendingFiles, PendingFiles]:
    memory = PendingMemory(LIMIT)
    one, two = (PendingFiles(memory=memory, segment_bytes=ONE_EPOCH, new_file=disk.new_file) for _ in range(2))
    return memory, one, two


def assert_whole(pending: PendingFiles, epochs: range) -> None:
    assert [pending.manifests(QUERY, Epoch(epoch)) for epoch in epochs] == [manifests_of(epoch) for epoch in epochs]


def test_two_tables_share_one_limit() -> None:
    memory, one, two = two_tables(Disk())
    for epoch in range(100):
        add(one, [epoch])
        add(two, [epoch])
        assert one.memory_bytes + two.memory_bytes == memory.used_bytes <= LIMIT
    assert one.spilled_bytes > 0
    assert two.spilled_bytes > 0
    assert_whole(one, range(100))
    assert_whole(two, range(100))


def test_the_table_that_has_most_in_memory_makes_room_for_the_other() -> None:
    disk = Disk()
    _, large, small = two_tables(disk)
    add(large, range(8))
    assert disk.files == []
    add(small, range(6))
    assert (small.spilled_bytes, large.spilled_bytes > 0) == (0, True)
    assert_whole(large, range(8))
    assert disk.bytes_read > 0


def test_what_one_table_commits_is_room_for_the_other() -> None:
    disk = Disk()
    memory, one, two = two_tables(disk)
    add(one, range(8))
    one.drop(QUERY)
    assert memory.used_bytes == 0
    add(two, range(8))
    assert disk.files == []


def test_a_disk_that_is_full_loses_nothing_of_either_table() -> None:
    disk = Disk(room=0)
    memory, one, two = two_tables(disk)
    add(one, range(9))
    before = memory.used_bytes
    with pytest.raises(LocalDiskFailed, match="make room there"):
        add(two, range(9), query=OTHER)
    assert before <= memory.used_bytes <= LIMIT
    assert_whole(one, range(9))


def test_a_table_that_is_closed_leaves_its_share_to_the_others() -> None:
    memory, one, two = two_tables(Disk())
    add(one, range(9))
    one.close()
    assert memory.used_bytes == 0
    add(two, range(9))
    assert two.spilled_bytes == 0
    assert memory._tables == [two]
