"""Pending epochs' manifests: kept in order, within a bound, spilled and let go, on disks that fail."""

from __future__ import annotations

import errno
import tempfile
import tracemalloc
from pathlib import Path

import pytest

from lakecommit.errors import CorruptState, LocalDiskFailed
from lakecommit.model import Epoch
from lakecommit.progress.pending import PendingFiles, PendingMemory
from tests.unit.progress.tools import OTHER, QUERY, Disk, add, manifests_of

ONE_EPOCH = 3 * 100 + 300
"""More than an epoch of `add` takes, in memory or on disk, and less than one and a half."""


def pending_on(disk: Disk, *, epochs: int = 10, per_segment: int = 4) -> PendingFiles:
    """Room for so many epochs in memory, and so many in a segment."""
    return PendingFiles(
        memory=PendingMemory(epochs * ONE_EPOCH), segment_bytes=per_segment * ONE_EPOCH, new_file=disk.new_file
    )


def test_few_epochs_need_no_disk() -> None:
    disk = Disk()
    pending = pending_on(disk)
    add(pending, range(5, 15))
    assert disk.files == []
    assert pending.spilled_bytes == 0
    assert [pending.manifests(QUERY, Epoch(epoch)) for epoch in range(5, 15)] == [
        manifests_of(epoch) for epoch in range(5, 15)
    ]


def test_what_is_not_pending_is_a_mistake_of_the_caller() -> None:
    pending = pending_on(Disk())
    add(pending, range(5, 40))
    pending.drop(QUERY, Epoch(24))
    for query, epoch in ((QUERY, 24), (QUERY, 40), (OTHER, 30)):
        with pytest.raises(KeyError, match=f"epoch {epoch} of {query} is not pending"):
            pending.manifests(query, Epoch(epoch))


@pytest.mark.parametrize("epoch", [0, 6, 8])
def test_an_epoch_that_does_not_follow_is_refused(epoch: int) -> None:
    pending = pending_on(Disk())
    add(pending, [5, 6])
    with pytest.raises(ValueError, match=f"epoch {epoch} of query-1 does not follow epoch 6"):
        add(pending, [epoch])
    add(pending, [7])


def test_a_user_who_has_nothing_pending_may_begin_anywhere() -> None:
    pending = pending_on(Disk())
    add(pending, [5, 6])
    pending.drop(QUERY, Epoch(6))
    add(pending, [3])
    pending.drop(QUERY)
    add(pending, [9])
    assert pending.manifests(QUERY, Epoch(9)) == manifests_of(9)


def test_the_newest_epochs_spill_and_the_oldest_stay_in_memory() -> None:
    disk = Disk()
    pending = pending_on(disk)
    add(pending, range(100))
    assert pending.memory_bytes <= 10 * ONE_EPOCH
    for epoch in range(6):
        pending.manifests(QUERY, Epoch(epoch))
    assert disk.bytes_read == 0


def test_a_segment_has_about_the_size_that_was_asked_for() -> None:
    disk = Disk()
    add(pending_on(disk, epochs=20, per_segment=10), range(500))
    sizes = [len(file.getbuffer()) for file in disk.open]
    assert all(size <= 10 * ONE_EPOCH for size in sizes)
    assert all(size >= 8 * ONE_EPOCH * 0.6 for size in sizes)


def test_an_epoch_larger_than_a_segment_is_one_of_its_own() -> None:
    disk = Disk()
    pending = pending_on(disk)
    add(pending, range(9))
    add(pending, [9, 10], count=30)
    assert len(disk.open) == 2
    add(pending, [11])
    assert pending.manifests(QUERY, Epoch(9)) == manifests_of(9, count=30)
    assert pending.manifests(QUERY, Epoch(10)) == manifests_of(10, count=30)
    assert pending.memory_bytes <= 10 * ONE_EPOCH


def test_an_epoch_larger_than_the_limit_is_kept_on_disk() -> None:
    disk = Disk()
    pending = pending_on(disk)
    add(pending, [0], count=500)
    assert pending.memory_bytes == 0
    assert pending.manifests(QUERY, Epoch(0)) == manifests_of(0, count=500)


def test_epochs_without_files_are_bounded_too() -> None:
    pending = pending_on(Disk())
    add(pending, range(1_000), count=0)
    assert pending.memory_bytes <= 10 * ONE_EPOCH
    assert pending.spilled_bytes > 0
    assert pending.manifests(QUERY, Epoch(999)) == ()


def test_read_in_order_every_byte_is_written_once_and_read_once() -> None:
    disk = Disk()
    pending = pending_on(disk, epochs=30, per_segment=10)
    add(pending, range(2_000))
    spilled = pending.spilled_bytes
    for epoch in range(2_000):
        assert pending.manifests(QUERY, Epoch(epoch)) == manifests_of(epoch)
        pending.drop(QUERY, Epoch(epoch))
    assert disk.bytes_written == spilled
    assert disk.bytes_read == spilled


def test_a_stream_that_goes_on_while_it_is_drained_writes_nothing_twice() -> None:
    disk = Disk()
    pending = pending_on(disk, epochs=30, per_segment=10)
    add(pending, range(200))
    for epoch in range(2_000):
        assert pending.manifests(QUERY, Epoch(epoch)) == manifests_of(epoch)
        pending.drop(QUERY, Epoch(epoch))
        add(pending, [200 + epoch])
        assert pending.memory_bytes <= 30 * ONE_EPOCH
        assert pending.spilled_bytes == disk.used
    assert disk.bytes_read <= disk.bytes_written <= 2_200 * ONE_EPOCH
    assert len(disk.files) <= 2_200 // 5


def test_a_segment_is_deleted_with_its_last_epoch_first_in_first_out() -> None:
    disk = Disk()
    pending = pending_on(disk, epochs=4, per_segment=4)
    add(pending, range(40))
    files = list(disk.files)
    still_open = []
    for epoch in range(40):
        pending.drop(QUERY, Epoch(epoch))
        assert disk.open == files[len(files) - len(disk.open) :]
        assert pending.spilled_bytes == disk.used
        still_open.append(len(disk.open))
    assert set(still_open) == set(range(len(files) + 1))
    assert pending.memory_bytes == 0


def test_dropping_what_is_gone_or_unknown_does_nothing() -> None:
    pending = pending_on(Disk())
    pending.drop(OTHER)
    add(pending, range(5, 30))
    before = (pending.memory_bytes, pending.spilled_bytes)
    pending.drop(QUERY, Epoch(2))
    pending.drop(OTHER, Epoch(100))
    assert (pending.memory_bytes, pending.spilled_bytes) == before
    with pytest.raises(KeyError):
        pending.manifests(QUERY, Epoch(4))
    assert pending.manifests(QUERY, Epoch(5)) == manifests_of(5)


def test_a_user_who_is_forgotten_leaves_the_others_alone() -> None:
    disk = Disk()
    pending = pending_on(disk)
    for epoch in range(30):
        add(pending, [epoch])
        add(pending, [epoch], query=OTHER, count=2)
    pending.drop(QUERY)
    assert [pending.manifests(OTHER, Epoch(epoch)) for epoch in range(30)] == [
        manifests_of(epoch, 2) for epoch in range(30)
    ]
    pending.drop(OTHER)
    assert disk.open == []
    assert (pending.memory_bytes, pending.spilled_bytes) == (0, 0)


def test_a_user_who_is_stuck_keeps_no_segment_of_others() -> None:
    disk = Disk()
    pending = pending_on(disk)
    for epoch in range(100):
        add(pending, [epoch])
        add(pending, [epoch], query=OTHER)
    pending.drop(OTHER)
    on_disk = PendingFiles(memory=PendingMemory(0), new_file=Disk().new_file)
    add(on_disk, range(100))
    assert 0 < pending.spilled_bytes < on_disk.spilled_bytes


def test_closing_lets_go_of_everything() -> None:
    disk = Disk()
    pending = pending_on(disk)
    add(pending, range(50))
    add(pending, range(50), query=OTHER)
    pending.close()
    assert disk.open == []
    assert (pending.memory_bytes, pending.spilled_bytes) == (0, 0)
    pending.close()


def test_a_damaged_segment_is_an_error_and_forgetting_the_user_helps() -> None:
    disk = Disk()
    pending = pending_on(disk)
    add(pending, range(50))
    disk.open[0].truncate(100)
    with pytest.raises(CorruptState, match=r"segment .* of query query-1 is damaged: it ends after 100 of"):
        for epoch in range(50):
            pending.manifests(QUERY, Epoch(epoch))
    pending.drop(QUERY)
    add(pending, range(50))
    assert pending.manifests(QUERY, Epoch(20)) == manifests_of(20)


def test_segments_that_changed_places_are_noticed() -> None:
    disk = Disk()
    pending = pending_on(disk)
    add(pending, range(50, 90))
    one, two = disk.open[:2]
    bodies = one.getvalue(), two.getvalue()
    assert len(bodies[0]) == len(bodies[1])
    for file, body in ((one, bodies[1]), (two, bodies[0])):
        file.seek(0)
        file.write(body)
    with pytest.raises(CorruptState, match=r"it has epoch \d+ of query query-1 where epoch \d+ should be"):
        for epoch in range(50, 90):
            pending.manifests(QUERY, Epoch(epoch))


@pytest.mark.parametrize("room", [0, 30, 500, 5_000, 20_000])
def test_a_full_disk_is_said_and_changes_nothing(room: int) -> None:
    disk = Disk(room)
    pending = pending_on(disk)
    added = 0
    with pytest.raises(LocalDiskFailed) as failure:
        for epoch in range(1_000):
            add(pending, [epoch])
            added += 1
    directory = tempfile.gettempdir()
    assert str(failure.value).startswith("cannot keep ")
    assert (
        f"bytes of pending epochs of query query-1 in the local directory {directory}: no space left on device; make "
        "room there or point SPARK_LOCAL_DIRS or TMPDIR elsewhere, then start the query again; nothing is lost"
    ) in str(failure.value)
    assert len(disk.open) == len(disk.files) - 1, "the file that was not complete is closed"
    assert disk.used == pending.spilled_bytes <= room
    with pytest.raises(KeyError):
        pending.manifests(QUERY, Epoch(added))
    assert [pending.manifests(QUERY, Epoch(epoch)) for epoch in range(added)] == [
        manifests_of(epoch) for epoch in range(added)
    ]

    disk.room = None
    add(pending, range(added, added + 50))
    assert pending.manifests(QUERY, Epoch(added)) == manifests_of(added)
    assert pending.memory_bytes <= 10 * ONE_EPOCH


def test_a_full_disk_does_not_add_a_user() -> None:
    disk = Disk(room=0)
    pending = pending_on(disk)
    with pytest.raises(LocalDiskFailed, match="cannot keep 50000 bytes"):
        add(pending, [7], count=500)
    add(pending, [3])
    assert pending.manifests(QUERY, Epoch(3)) == manifests_of(3)


def test_a_full_disk_that_buffers_hide_is_said() -> None:
    pending = PendingFiles(memory=PendingMemory(0), new_file=lambda: open("/dev/full", "w+b"))  # noqa: SIM115
    with pytest.raises(LocalDiskFailed, match="no space left on device"):
        add(pending, [0])


def test_a_directory_that_is_not_there_is_said(tmp_path: Path) -> None:
    pending = PendingFiles(memory=PendingMemory(0), local_dir=str(tmp_path / "gone"))
    with pytest.raises(LocalDiskFailed, match=f"local directory {tmp_path}/gone: no such file or directory"):
        add(pending, [0])


def test_a_disk_that_was_full_from_the_start_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    pending = PendingFiles(memory=PendingMemory(0), new_file=Disk(room=0).new_file)
    with pytest.raises(LocalDiskFailed, match="in any temporary directory: no space left on device"):
        add(pending, [0])


def test_local_files_have_no_name(tmp_path: Path) -> None:
    pending = PendingFiles(memory=PendingMemory(1_000), segment_bytes=1_000, local_dir=str(tmp_path))
    add(pending, range(20))
    assert pending.spilled_bytes > 0
    assert list(tmp_path.iterdir()) == []
    assert [pending.manifests(QUERY, Epoch(epoch)) for epoch in range(20)] == [
        manifests_of(epoch) for epoch in range(20)
    ]


def test_memory_is_bounded_with_300_000_files_pending() -> None:
    limit, epochs = 4 * 1024 * 1024, 1_000
    pending = PendingFiles(memory=PendingMemory(limit), segment_bytes=limit // 8)
    tracemalloc.start()
    try:
        for epoch in range(epochs):
            # Ten tasks with thirty files each, four hundred bytes a file.
            pending.add(QUERY, Epoch(epoch), manifests_of(epoch, count=10, size=30 * 400))
        for epoch in range(epochs):
            assert pending.manifests(QUERY, Epoch(epoch))[9].startswith(f"{epoch}/9/".encode())
            pending.drop(QUERY, Epoch(epoch))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The epoch that is handed in or out is the caller's; it is there twice while it is read.
    assert peak < limit + 10 * 10 * 30 * 400
