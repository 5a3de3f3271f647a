"""What a user is told when a write fails: in the first line of Spark's exception stands what is wrong, where, and what
to do; and that helps.

Each way to fail, as a batch and as a stream, through the driver's committer and without one. `test_connect` runs
this with Spark Connect, too, where there is none.
"""

from __future__ import annotations

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from pyspark.errors import PySparkException

from lakecommit.spark_ext.source import LakecommitDataSource

from .faults import FEW_IDS, Fault, small_batches, wait_for
from .streams import Source, quick_ids, run

pytestmark = pytest.mark.spark
__all__ = ["small_batches"]


@pytest.fixture(params=["registered", pytest.param("inline", marks=pytest.mark.soak)])
def session(request, spark):
    """A session that is registered, or one of the same driver that is not."""
    return spark if request.param != "inline" else spark.newSession()


@pytest.fixture(params=["batch", "stream"])
def write(request, session, tmp_path):
    """A function that writes ids, with more columns, into a table; what Spark says where that fails, else nothing."""
    written = []

    def batch(table, columns=(), options=None, through=None):
        frame = session.range(0, len(FEW_IDS), 1, 2).selectExpr("id", *columns)
        writer = (through or (lambda same: same))(frame).write.format("lakecommit").mode("append")
        try:
            writer.options(**(options or {})).save(str(table))
        except PySparkException as error:
            return [str(error)]
        return []

    def stream(table, columns=(), options=None, through=None):
        source = Source(tmp_path / f"input-{len(written)}")
        source.add(FEW_IDS)
        frame = source.frame(session).selectExpr("id", *columns)
        writer = (through or (lambda same: same))(frame).writeStream.format("lakecommit").options(**(options or {}))
        checkpoint = str(tmp_path / f"checkpoint-{len(written)}")
        written.append(checkpoint)
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start(str(table))
        try:
            query.awaitTermination()
        except PySparkException as error:
            return [str(error), str(query.exception())]
        return []

    return batch if request.param == "batch" else stream


def assert_told(said: list[str], *parts: str) -> None:
    """Each of the parts, in this order, in the first line of everything that was said."""
    assert said, "nothing has failed"
    for text in said:
        first = text.splitlines()[0]
        assert re.search(".*".join(re.escape(part) for part in ("lakecommit.errors.", *parts)), first), text
        assert "Traceback" not in text


def test_a_misspelt_option(write, tmp_path):
    table = tmp_path / "table"
    assert_told(write(table, options={"targetFileSiez": "1g"}), "targetfilesiez", "did you mean targetFileSize")
    assert write(table, options={"targetFileSize": "1g"}) == []


def test_a_column_that_the_table_does_not_have(write, session, tmp_path):
    table = tmp_path / "table"
    session.sql(f"CREATE TABLE delta.`{table}` (id bigint) USING delta")
    assert_told(write(table, ["1 as extra"]), str(table), "column extra is not in the table", "drop it")
    assert write(table) == []


def test_a_task_that_cannot_put_its_file(write, session, tmp_path):
    table = tmp_path / "table"
    session.sql(f"CREATE TABLE delta.`{table}` (id bigint, p bigint) USING delta PARTITIONED BY (p)")
    (table / "p=7").touch()
    said = write(table, ["7L as p"])
    assert_told(said, "cannot write p=7/", str(table), "not a directory", "; ")
    (table / "p=7").unlink()
    assert write(table, ["7L as p"]) == []
    assert quick_ids(table) == list(FEW_IDS)


@contextmanager
def meanwhile(fault, work):
    """Has `work` done while task 1 stands still."""
    fault.set()

    def do():
        try:
            wait_for(lambda: fault.met)
            work()
        finally:
            fault.release()

    with ThreadPoolExecutor(1) as beside:
        done = beside.submit(do)
        yield
        done.result()


@pytest.mark.usefixtures("small_batches")
def test_a_commit_that_no_longer_fits(write, session, tmp_path):
    """Somebody replaces the table between plan and commit, so that the commit is what is refused."""
    table = tmp_path / "table"
    fault = Fault(tmp_path / "fault", fails=False)
    session.sql(f"CREATE TABLE delta.`{table}` (id bigint, padding string) USING delta")

    def replace():
        rows = session.sql("SELECT 'x' AS id, 'y' AS padding")
        rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(str(table))

    with meanwhile(fault, replace):
        said = write(table, through=fault.into)
    assert_told(said, str(table), "column id was bigint and is string", "; ")


@pytest.mark.soak
def test_a_seal_that_cannot_be_put_and_a_restart_once_it_can(session, tmp_path):
    source, table, checkpoint = Source(tmp_path / "input"), tmp_path / "table", tmp_path / "c"
    source.add([0])
    run(source.frame(session), table, checkpoint)
    (first,) = table.rglob("seals/*.avro")
    in_the_way = first.with_name(f"{1:020d}.avro")
    in_the_way.mkdir()
    source.add([1])
    with pytest.raises(PySparkException) as failure:
        run(source.frame(session), table, checkpoint)
    assert_told([str(failure.value)], in_the_way.name, "; nothing was deleted, so run it again")
    shutil.rmtree(in_the_way)
    run(source.frame(session), table, checkpoint)
    assert quick_ids(table) == [0, 1]


def test_reading_what_is_no_table(session, tmp_path):
    with pytest.raises(PySparkException) as failure:
        # With Spark Connect nobody looks at the table before the schema is asked for.
        _ = session.read.format(LakecommitDataSource.name()).load(str(tmp_path)).schema
    assert_told([str(failure.value)], f"there is no table at {tmp_path}")
