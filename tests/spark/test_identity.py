"""Tables that are replaced, dropped or passed by under a stream, by Delta itself."""

from __future__ import annotations

import asyncio
import random
import re
import shlex
import shutil
import uuid

import pytest
from click.testing import CliRunner

from lakecommit.cli.main import cli
from lakecommit.clock import SystemClock
from lakecommit.formats.delta.table import DeltaFormat
from lakecommit.recovering.passed import commit_passed
from lakecommit.state.stored import stored_queries
from lakecommit.storage.location import open_store

from .streams import EPOCH_BY_EPOCH, Source, quick_ids, run


@pytest.fixture
def source(tmp_path):
    return Source(tmp_path / "input")


@pytest.mark.soak
def test_a_replaced_table_is_refused_until_the_user_names_it(spark, tmp_path, source):
    table, checkpoint = tmp_path / "table", tmp_path / "c"
    source.add([1])
    run(source.frame(spark), table, checkpoint)
    spark.sql(f"CREATE OR REPLACE TABLE delta.`{table}` USING delta AS SELECT 9L AS id, 'EU' AS region")
    source.add([2])
    with pytest.raises(Exception, match="acceptTableId") as refused:
        run(source.frame(spark), table, checkpoint)
    assert quick_ids(table) == [9]
    accepted = re.search(r"acceptTableId=([0-9a-f-]{36})", str(refused.value))[1]
    run(source.frame(spark), table, checkpoint, options={"acceptTableId": accepted})
    source.add([3])
    run(source.frame(spark), table, checkpoint)
    assert quick_ids(table) == [2, 3, 9], "what was replaced away is gone, what came since is there once"


def test_a_table_that_was_dropped_is_missed(spark, tmp_path, source):
    table, checkpoint = tmp_path / "table", tmp_path / "c"
    for number in (1, 2):
        source.add([number])
    run(source.frame(spark), table, checkpoint)
    shutil.rmtree(table)
    source.add([3])
    with pytest.raises(Exception, match="another table"):
        run(source.frame(spark), table, checkpoint)
    assert not (table / "_delta_log").exists()


def test_a_table_that_is_recreated_under_a_running_query_stops_it(spark, tmp_path, source, monkeypatch):
    """The new one has another id, fewer versions and nothing of the query."""
    table, checkpoint = tmp_path / "table", tmp_path / "c"
    source.add([1])
    writer = source.frame(spark).writeStream.format("lakecommit").options(**EPOCH_BY_EPOCH)
    query = writer.option("checkpointLocation", str(checkpoint)).start(str(table))
    try:
        query.processAllAvailable()
        source.add([2])
        query.processAllAvailable()
        assert quick_ids(table) == [1, 2]
        # As when the last look at the log was ten seconds ago.
        monkeypatch.setattr("lakecommit.formats.delta.table.LOOK_AGAIN_MS", -1)
        shutil.rmtree(table)
        spark.sql("SELECT 9L AS id, 'EU' AS region").write.format("delta").save(str(table))
        created = sorted((table / "_delta_log").glob("*.json"))
        source.add([3])
        with pytest.raises(Exception, match="was made anew") as running:
            query.processAllAvailable()
    finally:
        query.stop()
        # Or nothing is ever confirmed soon enough to be committed.
        monkeypatch.undo()
    with pytest.raises(Exception, match="was made anew") as restarted:
        run(source.frame(spark), table, checkpoint)
    old_id, accepted = _diagnosis(running)
    assert (old_id, accepted) == _diagnosis(restarted), "one diagnosis, however often it is met"
    assert old_id != accepted
    assert quick_ids(table) == [9]
    assert sorted((table / "_delta_log").glob("*.json")) == created
    source.add([4])
    run(source.frame(spark), table, checkpoint, options={"acceptTableId": accepted})
    source.add([5])
    run(source.frame(spark), table, checkpoint)
    assert quick_ids(table) == [3, 4, 5, 9], "it goes on where it was, and no input is read again"


def test_a_vacuum_beside_pending_epochs_is_noticed_and_the_query_goes_on_as_the_error_says(spark, tmp_path, source):
    table, checkpoint = tmp_path / "table", tmp_path / "c"
    for number in (1, 2):
        source.add([number])
        run(source.frame(spark), table, checkpoint)
    # As if the version of epoch 1 had never been put: its seal, its manifests and its files are there.
    for path in (table / "_delta_log").glob(f"*{2:020d}*"):
        path.unlink()
    key = "spark.databricks.delta.retentionDurationCheck.enabled"
    spark.conf.set(key, "false")
    try:
        spark.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")
    finally:
        spark.conf.unset(key)
    source.add([3])
    with pytest.raises(Exception, match=r"files of epoch 1 of query .* are gone") as refused:
        run(source.frame(spark), table, checkpoint)
    assert quick_ids(table) == [1], "the table can be read"
    command = re.search(r"'lakecommit (recover [^']* --discard --epochs 1 --apply)'", str(refused.value))[1]
    done = CliRunner().invoke(cli, shlex.split(command))
    assert done.exit_code == 0, done.output
    run(source.frame(spark), table, checkpoint)
    assert quick_ids(table) == [1, 3]


def test_epochs_that_deltas_own_sink_went_past_are_recovered(spark, tmp_path, source):
    """An epoch is sealed when the driver dies; the query goes on with format("delta") and its checkpoint, and back."""
    table, checkpoint = tmp_path / "table", tmp_path / "c"
    for number in (1, 2):
        source.add([number])
        run(source.frame(spark), table, checkpoint)
    # As if the version of epoch 1 had never been put: its seal, its manifests and its files are there.
    for path in (table / "_delta_log").glob(f"*{2:020d}*"):
        path.unlink()
    source.add([3])
    run(source.frame(spark), table, checkpoint, sink="delta")
    assert quick_ids(table) == [1, 3]
    source.add([4])
    with pytest.raises(Exception, match=r"epochs \[1\].*lakecommit recover"):
        run(source.frame(spark), table, checkpoint)
    asyncio.run(_recover(str(table)))
    run(source.frame(spark), table, checkpoint)
    assert quick_ids(table) == [1, 2, 3, 4]


def _diagnosis(caught) -> tuple[str, str]:
    """The old id, and the one that is to be accepted."""
    message = str(caught.value)
    return re.search(r"its id was ([0-9a-f-]{36})", message)[1], re.search(r"acceptTableId=([0-9a-f-]{36})", message)[1]


async def _recover(location: str) -> None:
    def new_id() -> str:
        return str(uuid.uuid4())

    store = open_store(location, {})
    delta = DeltaFormat(store, clock=SystemClock(), new_id=new_id, random=random.random)
    (query,) = [query async for query in stored_queries(store)]
    assert await commit_passed(store, delta, query, new_id) is not None
