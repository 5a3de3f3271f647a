"""Real readers of tables that are killed, paused and vacuumed under: every row once, or a failure that says why."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from .evidence import ids_by_deltalake
from .kills import killed_at_random_moments
from .table_streams import TableStream, assert_read_once, table_on_disk, table_on_s3

pytestmark = pytest.mark.spark
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"


# Of what tests here take minutes for, tests/unit/reading/test_beside_vacuums.py and test_planner.py have the same in
# one process: kills, restarts, pauses and vacuums, with the planner, leases and vacuums that are used here.
@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("where", ["disk", "s3"])
def test_table_to_table_killed_at_random_moments(start, tmp_path, rng, where, request):
    if where == "disk":
        stream = table_on_disk(tmp_path, files=90)
    else:
        stream = table_on_s3(tmp_path, 90, request.getfixturevalue("place_on_s3"))
    killed_at_random_moments(start, stream, rng, kills=20)
    assert_read_once(stream)
    assert len(stream.logged_leases) == 1
    assert {each.lease for each in stream.leases} >= stream.logged_leases


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_reader_that_is_killed_ten_times_while_all_that_it_reads_is_rewritten(start, tmp_path, rng, spark):
    stream = table_on_disk(tmp_path, files=40)
    driver = start(stream.job())
    driver.wait_until(lambda: driver.epochs, "an epoch")
    driver.kill()
    # Its snapshot has all these files. They are rewritten beside the drivers to come, not between two looks at one: it
    # would have read everything before it is killed.
    rewriter = Rewriter(spark, stream)
    with again_and_again(rewriter.rewrite):
        killed_at_random_moments(start, stream, rng, kills=9)
    assert rewriter.rewrites > 5
    assert_read_once(stream)
    assert len(stream.logged_leases) == 1


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_optimize_and_vacuum_in_a_loop_beside_a_reader_in_its_snapshot(start, tmp_path, spark):
    stream = table_on_disk(tmp_path, files=100)
    snapshot = {path.name for path in stream.input_files}
    short = {"leaseTtl": "1m"}
    driver = start(stream.job(reading=short))
    driver.wait_until(lambda: driver.epochs, "an epoch")
    (lease,) = stream.logged_leases
    optimizer = Optimizer(spark, stream, lease)

    def look() -> None:
        optimizer.round()
        assert snapshot <= {path.name for path in stream.input_files}, "a file that the lease keeps is gone"

    driver.finish(look)
    print(*optimizer.rounds, sep="\n")
    in_snapshot = [each for each in optimizer.rounds if each.in_snapshot]
    assert in_snapshot, "every round ended after the snapshot; it needs more files"
    for each in in_snapshot:
        assert each.removed > 1 and each.held_back >= len(snapshot) and each.deleted == 0
    # What came after the run had begun, all of which was compacted since.
    start(stream.job(reading=short)).finish()
    assert_read_once(stream)
    assert stream.logged_leases == {lease}
    stream.let_leases_expire()
    said = stream.vacuum()
    assert said["heldBack"] == [] and said["applied"]["deleted"] >= len(snapshot)
    assert {path.name for path in stream.input_files} == stream.live_files


@pytest.mark.soak
def test_a_reader_that_is_killed_keeps_its_files_until_its_lease_expires(start, tmp_path, spark):
    stream = table_on_disk(tmp_path, files=20)
    driver = start(stream.job())
    driver.wait_until(lambda: driver.epochs, "an epoch")
    driver.kill()
    rewriter = Rewriter(spark, stream)
    before = rewriter.files
    rewriter.rewrite()
    assert before <= rewriter.files
    stream.let_leases_expire(hours=7)
    stream.vacuum()
    assert not before & rewriter.files
    failed = start(stream.job())
    failed.wait()
    assert "LeaseLost" in failed.failure and stream.logged_leases.pop() in failed.failure, failed.text[-8000:]


@pytest.mark.soak
def test_a_reader_that_slept_past_its_lease_wakes_up_and_fails_before_anything_is_committed(start, tmp_path, spark):
    stream = table_on_disk(tmp_path, files=40)
    driver = start(stream.job(reading={"leaseTtl": "1m"}))
    driver.wait_until(lambda: len(driver.epochs) >= 2, "two epochs")
    driver.pause()
    done = stream.committed
    (lease,) = stream.logged_leases
    rewriter = Rewriter(spark, stream)
    before = rewriter.files
    asleep = time.monotonic()
    rewriter.rewrite()
    stream.let_leases_expire()
    cut = stream.vacuum()["goesUpTo"]
    assert not before & rewriter.files
    # Its own clocks tell it that it has slept, once half of its ttl has passed.
    while time.monotonic() - asleep < 31:
        time.sleep(1)
    driver.wake()
    driver.wait()
    assert not driver.ended
    # The second where it slept between planning a batch and reading it.
    assert "LeaseLost" in driver.failure or "VersionsGone" in driver.failure, driver.text[-8000:]
    for said in (f"lease {lease} of version ", rf"renewed last at {TIME}", rf"/cuts/{cut:020d}-[0-9a-f]{{32}}\.json"):
        assert re.search(said, driver.failure), driver.failure
    # The batch that it had planned may be read from files that it had open; nothing later is.
    assert done <= stream.committed <= done + 1
    assert ids_by_deltalake(stream.place) == stream.ids_of_snapshot(stream.committed)


@contextmanager
def again_and_again(work: Callable[[], None]) -> Iterator[None]:
    """Beside the block. Raises what the work raises."""
    over = threading.Event()

    def go_on() -> None:
        while not over.is_set():
            work()

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(go_on)
        try:
            yield
        finally:
            over.set()
        running.result()


@dataclass(frozen=True)
class Round:
    """`held_back` is how many files the vacuum left because of the lease. `in_snapshot` says that the reader was in its
    snapshot from the beginning to the end."""

    in_snapshot: bool
    removed: int
    held_back: int
    deleted: int


class Optimizer:
    """Adds small files to the table that a stream reads, has delta-spark's OPTIMIZE make one of all, and vacuums what
    that leaves, one at a time."""

    def __init__(self, spark, stream: TableStream, lease: str) -> None:
        self._spark = spark
        self._stream = stream
        self._lease = lease
        self.rounds: list[Round] = []

    def round(self) -> None:
        from delta.tables import DeltaTable  # noqa: PLC0415 (tests without Spark must not need it)

        began_in_snapshot = self._stream.in_snapshot
        self._stream.add_files(2)
        table = DeltaTable.forPath(self._spark, self._stream.input.location)
        removed = table.optimize().executeCompaction().select("metrics.numFilesRemoved").first()[0]
        said = self._stream.vacuum()
        held = [each["files"] for each in said["heldBack"] if each["lease"] == self._lease]
        in_snapshot = began_in_snapshot and self._stream.in_snapshot
        self.rounds.append(Round(in_snapshot, removed, max(held, default=0), said["applied"]["deleted"]))


class Rewriter:
    """Rewrites all of the table that a stream reads, with delta-spark, and vacuums what that leaves, one at a time."""

    def __init__(self, spark, stream: TableStream) -> None:
        self._spark = spark
        self._stream = stream
        self.rewrites = 0

    @property
    def files(self) -> set[str]:
        return {path.name for path in self._stream.input_files}

    def rewrite(self) -> None:
        """Other files with the same rows, so that nothing has changed."""
        path = self._stream.input.location
        rows = self._spark.read.format("delta").load(path)
        parts = 1 + self.rewrites % 3
        rows.repartition(parts).write.format("delta").mode("overwrite").option("dataChange", "false").save(path)
        self._stream.vacuum()
        self.rewrites += 1
