"""Real readers of tables that are killed, paused and vacuumed under: every row once, or a failure that says why."""

from __future__ import annotations

import time

import pytest

from .kills import killed_at_random_moments
from .table_streams import TableStream, assert_read_once, table_on_disk, table_on_s3

pytestmark = pytest.mark.spark


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
    rewriter = Rewriter(spark, stream)
    killed_at_random_moments(start, stream, rng, kills=10, look=rewriter.rewrite)
    assert rewriter.rewrites > 5
    assert_read_once(stream)
    assert len(stream.logged_leases) == 1


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_optimize_and_vacuum_in_a_loop_beside_a_reader_in_its_snapshot(start, tmp_path, spark):
    stream = table_on_disk(tmp_path, files=100)
    driver = start(stream.job())
    driver.wait_until(lambda: driver.epochs, "an epoch")
    rewriter = Rewriter(spark, stream)
    driver.finish(rewriter.rewrite)
    assert rewriter.rewrites > 1
    assert_read_once(stream)


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
    done = len(list((stream.checkpoint / "commits").iterdir()))
    rewriter = Rewriter(spark, stream)
    before = rewriter.files
    asleep = time.monotonic()
    rewriter.rewrite()
    stream.let_leases_expire()
    stream.vacuum()
    assert not before & rewriter.files
    # Its own clocks tell it that it has slept, once half of its ttl has passed.
    while time.monotonic() - asleep < 31:
        time.sleep(1)
    driver.wake()
    driver.wait()
    assert not driver.ended
    assert "LeaseLost" in driver.failure or "VersionsGone" in driver.failure, driver.text[-8000:]
    # The batch that it had planned may be read from files that it had open; nothing later is.
    assert len(list((stream.checkpoint / "commits").iterdir())) <= done + 2


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
        """As OPTIMIZE does: other files with the same rows, and nothing has changed."""
        path = self._stream.input.location
        rows = self._spark.read.format("delta").load(path)
        parts = 1 + self.rewrites % 3
        rows.repartition(parts).write.format("delta").mode("overwrite").option("dataChange", "false").save(path)
        self._stream.vacuum()
        self.rewrites += 1
