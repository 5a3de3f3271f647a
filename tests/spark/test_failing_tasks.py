"""Tasks that fail, and queries that are stopped, in the middle of their rows: nothing of it is ever seen."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from lakecommit.demo.place import Place
from tests.process.evidence import Objects, assert_no_orphans

from .faults import FEW_IDS, MANY_IDS, Fault, small_batches, wait_for
from .streams import Source, quick_ids, run, tidy

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("small_batches")]
__all__ = ["small_batches"]

A_FILE_A_ROW = {"maxRecordsPerFile": "1"}
# Longer than any attempt may upload.
TWO_HOURS_S = 7200


def objects(table) -> Objects:
    return Objects.of(Place(str(table), {}, None))


def tasks(manifests) -> set[str]:
    return {path.rpartition("/")[2].partition("-")[0] for path in manifests}


def unreported(found: Objects) -> set[str]:
    """The manifests of task 1, which is still to be waited for: they name its files until it has given up."""
    return {path for path in found.manifests if path.rpartition("/")[2].startswith("1-")}


def tidied(table) -> list[str]:
    """What is left of a table once all writers have been gone for two hours and the driver has cleaned up."""
    for path in table.rglob("*.avro"):
        os.utime(path, (time.time() - TWO_HOURS_S,) * 2)
    tidy()
    return [str(path) for path in table.rglob("*") if path.is_file()]


def has_finished_a_task(spark) -> bool:
    """Whether a writer's task has ended: the last stage of a job is the one that writes."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [job for number in tracker.getActiveJobsIds() if (job := tracker.getJobInfo(number))]
    stages = [stage for job in jobs if (stage := tracker.getStageInfo(max(job.stageIds)))]
    return any(stage.numCompletedTasks for stage in stages)


def append(frame, table, options) -> None:
    frame.write.format("lakecommit").mode("append").options(**options).save(str(table))


@contextmanager
def released_when_the_other_task_has_reported(spark, fault, table):
    """Gives what is staged at that moment, as a future."""
    over = threading.Event()

    def release():
        wait_for(lambda: over.is_set() or (fault.met and has_finished_a_task(spark)))
        staged = objects(table)
        fault.release()
        return staged

    with ThreadPoolExecutor(1) as beside:
        staged = beside.submit(release)
        try:
            yield staged
        finally:
            over.set()


@pytest.mark.parametrize(
    "with_files",
    [pytest.param(False, id="before its first file"), pytest.param(True, id="after some", marks=pytest.mark.soak)],
)
def test_a_batch_write_whose_task_fails_leaves_nothing_and_may_be_repeated(spark, tmp_path, with_files):
    """The other task has written all of its files by then, and reported."""
    table, options = tmp_path / "table", A_FILE_A_ROW if with_files else {}
    fault = Fault(tmp_path / "fault", table if with_files else None)
    fault.set()
    ids_written = MANY_IDS if with_files else FEW_IDS
    frame = fault.into(spark.range(0, len(ids_written), 1, 2))
    released = released_when_the_other_task_has_reported(spark, fault, table)
    with released as releasing, pytest.raises(Exception, match="the fault of task 1"):
        append(frame, table, options)
    staged = releasing.result()
    assert staged.data
    assert tasks(staged.manifests) == ({"0", "1"} if with_files else {"0"})
    left = objects(table)
    assert (left.seals, left.versions) == (set(), set())
    assert not (staged.data | staged.manifests) & (left.data | left.manifests) - unreported(staged)
    # The rows of the other task have just ended, as far as it knows: it may still be writing those that it had.
    wait_for(lambda: tidied(table) == [])
    fault.remove()
    append(frame, table, {})
    assert quick_ids(table) == list(ids_written)
    tidy()
    assert objects(table).manifests == set()
    assert_no_orphans(Place(str(table), {}, None))


def test_a_stream_whose_task_fails_is_exact_after_a_restart(spark, tmp_path):
    source, table, checkpoint = Source(tmp_path / "input"), tmp_path / "table", tmp_path / "c"
    source.add([-1])
    run(Fault(tmp_path).into(source.frame(spark)), table, checkpoint)
    before = objects(table)
    source.add(FEW_IDS)
    fault = Fault(tmp_path / "fault")
    fault.set()
    frame = fault.into(source.frame(spark))
    released = released_when_the_other_task_has_reported(spark, fault, table)
    with released as releasing, pytest.raises(Exception, match="the fault of task 1"):
        run(frame, table, checkpoint)
    lost, after = releasing.result().data - before.data, objects(table)
    assert lost
    assert lost <= after.data, "who has lost is not known before the epoch is sealed"
    assert (after.seals, after.versions) == (before.seals, before.versions)
    assert quick_ids(table) == [-1]
    fault.remove()
    run(frame, table, checkpoint)
    assert quick_ids(table) == [-1, *FEW_IDS]
    tidy()
    assert not lost & objects(table).data
    assert_no_orphans(Place(str(table), {}, None))


def test_a_query_that_is_stopped_in_an_epoch_writes_it_when_it_runs_again(spark, tmp_path):
    source, table, checkpoint = Source(tmp_path / "input"), tmp_path / "table", tmp_path / "c"
    fault = Fault(tmp_path / "fault", fails=False)
    source.add([-1])
    run(Fault(tmp_path).into(source.frame(spark)), table, checkpoint)
    before = objects(table)
    source.add(FEW_IDS)
    fault.set()
    frame = fault.into(source.frame(spark))
    writer = frame.writeStream.format("lakecommit").option("checkpointLocation", str(checkpoint))
    query = writer.start(str(table))
    wait_for(lambda: fault.met or query.exception())
    query.stop()
    assert query.exception() is None
    after = objects(table)
    assert (after.seals, after.versions) == (before.seals, before.versions)
    assert not (checkpoint / "commits" / "1").exists()
    # What is left of the task, if anything, finds its rows now.
    fault.release()
    fault.remove()
    run(frame, table, checkpoint)
    assert quick_ids(table) == [-1, *FEW_IDS]
    assert objects(table).newest_seal == 1
    tidy()
    assert_no_orphans(Place(str(table), {}, None))
