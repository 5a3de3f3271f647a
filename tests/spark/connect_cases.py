"""What is so with Spark Connect alone. `test_connect` runs this, in a process of its own; pytest does not find it by
its name."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.connect import PythonException
from pyspark.sql.connect.readwriter import DataFrameWriter
from pyspark.sql.connect.streaming.readwriter import DataStreamWriter

import lakecommit
from lakecommit.errors import InvalidInput
from lakecommit.spark_ext.connect_calls import _BatchWriters
from lakecommit.state.lease_layout import LEASES, parse_lease

from .streams import Source, ids, quick_ids, run


@pytest.fixture(autouse=True)
def _is_connect(spark):
    assert type(spark).__module__ == "pyspark.sql.connect.session"


@pytest.fixture
def unregistered(spark, monkeypatch):
    """A session of a client that has nothing of lakecommit: pyspark's methods are what they were, too."""
    for writer, name in ((DataFrameWriter, "save"), (DataStreamWriter, "start")):
        monkeypatch.setattr(writer, name, getattr(writer, name).__wrapped__)
    return spark.builder.channelBuilder(spark.client._builder).create()


def append(spark, table, *columns) -> None:
    spark.range(3).selectExpr("id", *columns).write.format("lakecommit").mode("append").save(str(table))


def test_without_register_batch_and_stream_write(unregistered, tmp_path):
    table, source = tmp_path / "table", Source(tmp_path / "input")
    source.add([10])
    append(unregistered, table, "'EU' as region")
    run(source.frame(unregistered), table, tmp_path / "c")
    assert ids(unregistered, table) == [0, 1, 2, 10]
    read = unregistered.read.format("lakecommit").option("where", "id > 0").load(str(table))
    assert sorted(row.id for row in read.collect()) == [1, 2, 10]


def copied(session, table, directory) -> list[int]:
    """What a stream out of the table has brought into another one, run after run."""
    stream = session.readStream.format("lakecommit").option("maxFilesPerTrigger", 1).load(str(table))
    run(stream, directory / "copy", directory / "c")
    return quick_ids(directory / "copy")


@pytest.mark.parametrize("registered", [True, False])
def test_streams_read_a_table_and_go_on_with_what_comes(request, spark, tmp_path, registered):
    session = spark if registered else request.getfixturevalue("unregistered")
    append(session, tmp_path / "table", "'EU' as region")
    assert copied(session, tmp_path / "table", tmp_path) == [0, 1, 2]
    append(session, tmp_path / "table", "'US' as region")
    assert copied(session, tmp_path / "table", tmp_path) == [0, 0, 1, 1, 2, 2]
    leases = [parse_lease(f"{LEASES}/{path.name}") for path in (tmp_path / "table" / LEASES).iterdir()]
    assert len({each.lease for each in leases}) == 1, "the second run goes on with the lease of the first"


def test_without_register_pyspark_has_the_first_line_of_a_task_that_fails(unregistered, tmp_path):
    """As docs/when-something-is-wrong.md says. Where this fails, pyspark has become better: then say so there."""
    table = tmp_path / "table"
    unregistered.sql(f"CREATE TABLE delta.`{table}` (id bigint, p bigint) USING delta PARTITIONED BY (p)")
    (table / "p=7").touch()
    with pytest.raises(PySparkException) as failure:
        append(unregistered, table, "7L as p")
    first, second, *_ = str(failure.value).strip().splitlines()
    assert "lakecommit.errors." not in first
    assert "lakecommit.errors.StoreError: cannot write p=7/" in second


def test_other_peoples_failures_are_left_alone():
    """Also one of a function in the same task that names us."""
    failed = PythonException("from the Python worker: Traceback\nRuntimeError: lakecommit.errors.StoreError: not ours")
    with pytest.raises(PythonException) as failure, _BatchWriters().calling(None):
        raise failed
    assert failure.value is failed


def test_register_again_wraps_once(spark):
    lakecommit.register(spark)
    assert not hasattr(DataFrameWriter.save.__wrapped__, "__wrapped__")
    assert not hasattr(DataStreamWriter.start.__wrapped__, "__wrapped__")


def test_listeners_are_refused(spark):
    @dataclass
    class Listener:
        name: str = "somebody"

        def on_snapshot(self, snapshot) -> None:
            pass

    with pytest.raises(InvalidInput, match=r"listeners are called in the driver's process.*; leave them out here"):
        lakecommit.register(spark, listeners=[Listener()])
