"""Streams out of tables, in a real session: what a query reads, keeps and says, and the order in which Spark calls."""

from __future__ import annotations

import json
import logging
import os
import re
import time
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from click.testing import CliRunner

import lakecommit
from lakecommit.cli.main import cli

from .streams import quick_ids, run

pytestmark = pytest.mark.spark
SMALL = {"maxFilesPerTrigger": "2"}


def add(table: Path, *ids: int) -> None:
    """A version of one file."""
    rows = pa.table({"id": pa.array(ids, pa.int64()), "region": ["EU"] * len(ids)})
    deltalake.write_deltalake(str(table), rows, mode="append")


def a_table(directory: Path, versions: int = 5) -> Path:
    for number in range(versions):
        add(directory / "input", 2 * number, 2 * number + 1)
    return directory / "input"


def stream(spark, table: Path, **options: str):
    return spark.readStream.format("lakecommit").options(**{**SMALL, **options}).load(str(table))


def offsets(checkpoint: Path) -> list[dict]:
    numbers = sorted(int(path.name) for path in (checkpoint / "offsets").iterdir() if path.name.isdigit())
    return [json.loads((checkpoint / "offsets" / str(number)).read_text().splitlines()[2]) for number in numbers]


def said_of(caplog, table: Path) -> list[list[str]]:
    """What the driver's log has said of streams from this table, by words."""
    found = [each.getMessage().split() for each in caplog.records if each.name == "lakecommit.observing"]
    return [words for words in found if f"table={table}" in words and words[0].startswith("snapshot-")]


def test_table_to_table_in_few_versions_and_on_from_there(spark, tmp_path):
    table, out, checkpoint = a_table(tmp_path), tmp_path / "out", tmp_path / "checkpoint"
    catching_up = {"backlogInterval": "30s"}
    run(stream(spark, table), out, checkpoint, options=catching_up)
    assert quick_ids(out) == list(range(10))
    assert deltalake.DeltaTable(str(out)).version() == 1, "the table is made, and one version catches up"
    assert [each["version"] for each in offsets(checkpoint)] == [-1, -1, -1, 4]
    (lease,) = {each["lease"] for each in offsets(checkpoint)}
    figures = lakecommit.metrics()[str(table)][f"reader-{lease}"]
    assert (figures["splits"], figures["planned"], figures["released"]) == (0, 5, 1)
    # Rows that were only moved come no second time.
    deltalake.DeltaTable(str(table)).optimize.compact()
    add(table, 10, 11)
    run(stream(spark, table), out, checkpoint)
    assert quick_ids(out) == list(range(12))
    assert {each["lease"] for each in offsets(checkpoint)} == {lease}


def test_a_batch_of_many_small_versions_is_few_tasks(spark, tmp_path):
    table, out, checkpoint = a_table(tmp_path, versions=1), tmp_path / "out", tmp_path / "checkpoint"
    run(stream(spark, table), out, checkpoint)
    for number in range(1, 20):
        add(table, 2 * number, 2 * number + 1)
    run(stream(spark, table, maxFilesPerTrigger="100"), out, checkpoint)
    assert quick_ids(out) == list(range(40))
    # A task writes a file: one for the first version, then few for nineteen.
    assert len(list(out.glob("*.parquet"))) <= 10


def test_the_drivers_log_says_once_that_a_snapshot_is_released(spark, tmp_path, caplog):
    caplog.set_level(logging.INFO, "lakecommit.observing")
    table, checkpoint = a_table(tmp_path), tmp_path / "checkpoint"
    writer = stream(spark, table).writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.start()
    try:
        # What is planned after the release has the same figure of it.
        for version in range(4, 7):
            while not (query.lastProgress and offsets(checkpoint)[-1]["version"] == version):
                assert query.isActive, query.exception()
                time.sleep(0.1)
            add(table, 2 * version + 2, 2 * version + 3)
    finally:
        query.stop()
    (lease,) = {each["lease"] for each in offsets(checkpoint)}
    planned, released = said_of(caplog, table)
    assert planned[0] == "snapshot-planned" and {f"lease={lease}", "splits=5", "released=0"} <= set(planned)
    assert released[0] == "snapshot-released" and {f"lease={lease}", "splits=0", "released=1"} <= set(released)


def test_a_batch_whose_files_go_after_it_was_planned_names_the_lease_and_the_cut(spark, tmp_path):
    table, read = a_table(tmp_path, 2), []

    def sink(rows, epoch):
        if epoch == 1:
            # As if the driver slept here, for longer than its lease lasts.
            deltalake.DeltaTable(str(table)).optimize.compact()
            for lease in (table / "_lakecommit" / "leases").iterdir():
                os.utime(lease, (0, 0))
            vacuum = ["vacuum", str(table), "--retain", "0m", "--short-retention", "--apply"]
            assert CliRunner().invoke(cli, vacuum).exit_code == 0
        read.extend(sorted(row.id for row in rows.collect()))

    checkpoint = tmp_path / "checkpoint"
    frame = stream(spark, table, maxFilesPerTrigger="1")
    query = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    with pytest.raises(Exception, match="is gone, which version 1 needs") as caught:
        query.trigger(availableNow=True).start().awaitTermination()
    (lease,) = {each["lease"] for each in offsets(checkpoint)}
    (cut,) = (table / "_lakecommit" / "vacuum" / "cuts").iterdir()
    at = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00"
    for said in (
        rf"/cuts/{cut.name} before that, at {at}",
        rf"it had lease {lease} of version 1, renewed last at {at}",
    ):
        assert re.search(said, str(caught.value)), caught.value
    assert read == [0, 1]


def test_a_batch_that_spark_runs_again_reads_the_same(spark, tmp_path):
    """Into a sink that remembers nothing."""
    table, checkpoint = a_table(tmp_path), tmp_path / "checkpoint"
    run(stream(spark, table), "none", checkpoint, sink="noop")
    add(table, 10, 11)
    # As if the driver had died before Spark could write them.
    for log, number in (("commits", 3), ("commits", 2), ("offsets", 3)):
        (checkpoint / log / str(number)).unlink()
        (checkpoint / log / f".{number}.crc").unlink(missing_ok=True)
    progress = run(stream(spark, table), "none", checkpoint, sink="noop")
    assert [(each.batchId, each.numInputRows) for each in progress if each.numInputRows] == [(2, 2), (4, 2)]
    assert [each["version"] for each in offsets(checkpoint)] == [-1, -1, -1, 4, 5]


def test_columns_conditions_and_where_it_starts(spark, tmp_path):
    table = a_table(tmp_path)
    chosen = stream(spark, table, columns="id", where="id >= 5", startingVersion="2")
    assert chosen.schema.names == ["id"]
    run(chosen, tmp_path / "out", tmp_path / "checkpoint")
    assert quick_ids(tmp_path / "out") == [5, 6, 7, 8, 9]


def test_a_schema_that_grows_stops_it_in_a_sentence_and_a_new_start_goes_on(spark, tmp_path):
    table, out, checkpoint = a_table(tmp_path, 1), tmp_path / "out", tmp_path / "checkpoint"
    run(stream(spark, table), out, checkpoint)
    before = stream(spark, table)
    add(table, 2, 3)
    rows = pa.table({"id": pa.array([4], pa.int64()), "region": ["EU"], "more": ["x"]})
    deltalake.write_deltalake(str(table), rows, mode="append", schema_mode="merge")
    with pytest.raises(Exception, match=r"column more .* is not in the query's schema"):
        run(before, out, checkpoint)
    assert quick_ids(out) == [0, 1, 2, 3]
    run(stream(spark, table), out, checkpoint, options={"mergeSchema": "true"})
    assert quick_ids(out) == [0, 1, 2, 3, 4]


def test_a_parquet_directory_is_read_too(spark, tmp_path):
    to = tmp_path / "input"
    for first in (0, 5):
        rows = spark.range(first, first + 5, 1, 1)
        rows.write.format("lakecommit").option("tableFormat", "parquet").mode("append").save(str(to))
    run(stream(spark, to), tmp_path / "out", tmp_path / "checkpoint")
    assert quick_ids(tmp_path / "out") == list(range(10))
