"""Two queries of one driver in one table, one of which has a past."""

from __future__ import annotations

import json
import os
import time

import deltalake
import pytest
from click.testing import CliRunner

from lakecommit.cli.main import cli
from lakecommit.demo.place import Place
from tests.process.evidence import assert_no_orphans

from .faults import Fault, wait_for
from .streams import EPOCH_BY_EPOCH, Source, quick_ids, run

pytestmark = pytest.mark.spark


def start(frame, table, checkpoint):
    writer = frame.writeStream.format("lakecommit").options(**EPOCH_BY_EPOCH)
    return writer.option("checkpointLocation", str(checkpoint)).start(str(table))


def versions(table) -> int:
    return deltalake.DeltaTable(str(table)).version()


def test_a_query_that_repeats_an_epoch_beside_one_that_plans_it_afresh(spark, tmp_path):
    """Both run their epoch 1 at the same time; one of them has run it before, and only that one skips it.

    It keeps state, without which Spark would not run it again.
    """
    table = tmp_path / "table"
    old, fresh = Source(tmp_path / "old"), Source(tmp_path / "fresh")
    hold = Fault(tmp_path / "hold", fails=False)
    for number in range(2):
        old.add(range(10 * number, 10 * number + 10))
    fresh.add(range(100, 110))
    frames = Fault(tmp_path).into(old.frame(spark)).dropDuplicates(["id"]), hold.into(fresh.frame(spark))
    run(frames[0], table, tmp_path / "c-old")
    run(frames[1], table, tmp_path / "c-fresh")
    for name in ("1", ".1.crc"):
        (tmp_path / "c-old" / "commits" / name).unlink()
    before, files = versions(table), set(table.rglob("*.parquet"))
    fresh.add(range(110, 120))
    hold.set()
    queries = [start(frames[1], table, tmp_path / "c-fresh")]
    try:
        wait_for(lambda: hold.met or queries[0].exception())
        queries.append(start(frames[0], table, tmp_path / "c-old"))
        wait_for(lambda: (tmp_path / "c-old" / "commits" / "1").exists() or queries[1].exception())
        hold.release()
        for query in queries:
            query.processAllAvailable()
    finally:
        hold.release()
        for query in queries:
            query.stop()
    assert quick_ids(table) == [*range(20), *range(100, 120)]
    assert versions(table) == before + 1
    assert len(set(table.rglob("*.parquet")) - files) == 2, "the tasks of the repeated epoch write nothing"


def lakecommit(*arguments) -> dict:
    result = CliRunner().invoke(cli, [*map(str, arguments), "--json"], prog_name="lakecommit")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def abandoned(spark, tmp_path):
    """A query whose epochs 1 and 2 are sealed and pending, and whose checkpoint is gone for good."""
    table, source = tmp_path / "table", Source(tmp_path / "input")
    for number in range(3):
        source.add([number])
        query = str(run(source.frame(spark), table, tmp_path / "c")[0].id)
    # As if the versions of both had never been put: their seals, their manifests and their files are there.
    for version in (2, 3):
        for path in (table / "_delta_log").glob(f"*{version:020d}*"):
            path.unlink()
    for path in (table / "_lakecommit").rglob("*.avro"):
        os.utime(path, (time.time() - 7200,) * 2)
    return query


# What is given up, and that only that is, the unit tests of the command ask.
@pytest.mark.parametrize(
    "verb", [(), pytest.param(("--discard",), marks=pytest.mark.soak)], ids=["committed", "discarded"]
)
def test_what_another_checkpoint_left_pending_stays_until_it_is_recovered(spark, tmp_path, abandoned, verb):
    table, source = tmp_path / "table", Source(tmp_path / "new-input")
    source.add([10])
    query = start(source.frame(spark), table, tmp_path / "c-new")
    try:
        query.processAllAvailable()
        assert str(query.id) != abandoned
        assert quick_ids(table) == [0, 10]
        (found,) = (each for each in lakecommit("recover", table)["queries"] if each["query"] == abandoned)
        assert [each["epoch"] for each in found["pending"]] == [1, 2]
        lakecommit("recover", table, "--query", abandoned, *verb, "--apply")
        source.add([11])
        query.processAllAvailable()
    finally:
        query.stop()
    assert quick_ids(table) == ([0, 10, 11] if verb else [0, 1, 2, 10, 11])
    assert all(each["pending"] == [] for each in lakecommit("recover", table)["queries"])
    assert_no_orphans(Place(str(table), {}, None))
