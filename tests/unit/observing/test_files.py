"""The files of a table for readers that know no log: all that is committed, nothing else, under names that open."""

from __future__ import annotations

import asyncio
import json
import uuid
from dataclasses import replace

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import lakecommit
from lakecommit.errors import CorruptState, InvalidInput, UnsupportedTable
from lakecommit.formats import files as reading
from lakecommit.formats.change import Scope
from lakecommit.formats.parquet import files as parquet_files
from lakecommit.formats.plan import BATCH
from lakecommit.model import Attempt, AttemptId, Epoch, QueryId, TaskId
from lakecommit.progress.settings import Replacement
from lakecommit.writing.attempt import write_attempt_on_loop
from lakecommit.writing.settings import WriterSettings
from tests.lake import ASYNCHRONOUS, QUERY, SCHEMA, SETTINGS, Lake, hold
from tests.lake.directory import Directory

# Each is written into a path, escaped once for the directory and once more for the log.
VALUES = ["a b", "100%", "k=v", "12:30", "grün/blau", "日本", "007", "x%20y", "it's", None]
PARTITIONED = replace(SETTINGS, partition_columns=("text",))
TEXT = ds.partitioning(pa.schema([("text", pa.string())]), flavor="hive")


@pytest.fixture(params=["delta", "parquet"])
def lake(request, tmp_path):
    """In a directory whose own name is odd."""
    made = Lake.at(str(tmp_path / "ein Ort %20 x=1 ü"))
    return made if request.param == "delta" else Directory(made.clock, made.store, made.flaky)


@pytest.fixture
def directory(tmp_path):
    made = Lake.at(str(tmp_path / "directory"))
    return Directory(made.clock, made.store, made.flaky)


async def write(lake, committer, epoch, values, query=QUERY):
    """One row for each of `values`, which are those of the partition column."""
    planned = await committer.plan(SCHEMA, PARTITIONED, queries=[query])
    ids = [epoch * 100 + number for number in range(len(values))]
    rows = pa.record_batch({"id": pa.array(ids, pa.int64()), "text": pa.array(values, pa.string())})
    attempt = Attempt(query, Epoch(epoch), TaskId(0), AttemptId(uuid.uuid4().hex))
    return await write_attempt_on_loop([rows], attempt, planned.plan, WriterSettings(), lake.store, lake.clock)


async def epoch(lake, committer, number, values):
    report = await write(lake, committer, number, values)
    await lake.commit(committer, number, [report], settings=PARTITIONED)


def rows_of(location, partitioning=TEXT):
    found = ds.dataset(lakecommit.files(location), format="parquet", partitioning=partitioning).to_table()
    return sorted((row["id"], row["text"]) for row in found.to_pylist())


def test_pyarrow_opens_what_is_committed_and_nothing_else(lake):
    async def scenario():
        committer = lake.committer()
        await epoch(lake, committer, 0, VALUES)
        await epoch(lake, committer, 1, ["a b"])
        # An attempt that has lost, or may still win.
        await write(lake, committer, 2, ["a b"])

    asyncio.run(scenario())
    assert len(asyncio.run(lake.paths())) == len(VALUES) + 2
    assert rows_of(lake.location) == [*enumerate(VALUES), (100, "a b")]


def test_what_is_pending_is_not_listed(lake):
    async def scenario():
        committer = lake.committer()
        await epoch(lake, committer, 0, ["a"])
        hold(committer)
        await lake.commit(
            committer, 1, [await write(lake, committer, 1, ["b"])], settings=PARTITIONED, pace=ASYNCHRONOUS
        )

    asyncio.run(scenario())
    assert rows_of(lake.location) == [(0, "a")]


def test_sizes_are_those_of_the_files(lake):
    async def scenario():
        await epoch(lake, lake.committer(), 0, VALUES)
        table_format = lake.format()
        pages = table_format.files(await table_format.open())
        return {file.location: file.size_bytes async for page in pages for file in page}

    found = asyncio.run(scenario())
    sizes = {info.path: info.size_bytes for info in asyncio.run(listed(lake))}
    assert found == {f"{lake.location}/{path}": size for path, size in sizes.items() if path.startswith("text=")}


async def listed(lake):
    return [info async for page in lake.store.list("") for info in page]


def test_there_is_no_table(tmp_path):
    with pytest.raises(InvalidInput, match=r"there is no table at .*; check the location"):
        lakecommit.files(str(tmp_path))


def test_in_a_loop_too(lake):
    """As in a notebook."""

    async def scenario():
        await epoch(lake, lake.committer(), 0, ["a"])
        assert len(lakecommit.files(lake.location)) == 1

    asyncio.run(scenario())


def test_across_compacts_and_cleaning(directory, monkeypatch):
    monkeypatch.setattr(parquet_files, "PAGE", 3)

    async def scenario():
        committer = directory.committer()
        for number in range(33):
            await directory.epoch(committer, number, [number])
        directory.pass_minutes(90)
        assert (await directory.format().clean_log()).deleted

    asyncio.run(scenario())
    found = lakecommit.files(directory.location)
    assert found == [f"{directory.location}/{path}" for path in asyncio.run(directory.files())]
    assert len(found) == len(set(found)) == 33


def test_a_list_of_batch_writes(directory):
    """Marks are lines of directories, and what was replaced is in older lists alone."""

    async def batch(committer, ids, scope=None):
        query = QueryId(f"batch-{uuid.uuid4()}")
        settings = replace(SETTINGS, replaces=None if scope is None else Replacement(scope, None))
        planned = await committer.plan(SCHEMA, settings, afresh=True, owner=BATCH)
        if scope is not None:
            settings = replace(settings, replaces=Replacement(scope, planned.version))
        reports = [await directory.report(planned, 0, 0, ids, query=query)]
        await committer.commit_batch(query, reports, schema=SCHEMA, settings=settings, txn=None)

    async def scenario():
        committer = directory.committer()
        await batch(committer, [1])
        await batch(committer, [2], Scope())
        await batch(committer, [3])

    asyncio.run(scenario())
    assert rows_of(directory.location, None) == [(2, "row 2"), (3, "row 3")]
    assert len(lakecommit.files(directory.location)) == 2


def test_what_sparks_own_sink_has_written_is_there_too(directory):
    async def scenario():
        await directory.epoch(directory.committer(), 0, [0])
        await directory.sparks_sink(1, [1])

    asyncio.run(scenario())
    assert rows_of(directory.location, None) == [(0, "row 0"), (1, "row 1")]


def test_a_log_with_a_hole_says_nothing(directory):
    async def scenario():
        await directory.epoch(directory.committer(), 0, [0])
        await directory.sparks_sink(2, [2])

    asyncio.run(scenario())
    with pytest.raises(CorruptState, match=r"has no entry 1, so that nobody can tell what is committed"):
        lakecommit.files(directory.location)


def put_version(lake, number, *actions):
    body = "\n".join(map(json.dumps, actions)).encode()
    asyncio.run(lake.store.put(f"_delta_log/{number:020d}.json", body))


@pytest.fixture
def delta(tmp_path):
    made = Lake.at(str(tmp_path / "delta"))
    asyncio.run(made.epoch(made.committer(), 0, [0, 1]))
    return made


def protocol(*features):
    return {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": list(features),
            "writerFeatures": list(features),
        }
    }


def test_deletion_vectors_are_refused_where_a_file_has_one(delta):
    put_version(delta, 2, protocol("deletionVectors"))
    assert len(lakecommit.files(delta.location)) == 1
    ((_, add),) = [(n, a["add"]) for n, a in asyncio.run(delta.actions()) if "add" in a]
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "sizeInBytes": 36, "cardinality": 1}
    put_version(delta, 3, {"remove": add}, {"add": {**add, "deletionVector": vector}})
    with pytest.raises(UnsupportedTable, match=r"alone do not say what rows it has: it has deletion vectors"):
        lakecommit.files(delta.location)


def test_column_mapping_is_refused(delta):
    ((_, metadata),) = [(n, a["metaData"]) for n, a in asyncio.run(delta.actions()) if "metaData" in a]
    configuration = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
    put_version(delta, 2, protocol("columnMapping"), {"metaData": {**metadata, "configuration": configuration}})
    with pytest.raises(UnsupportedTable, match=r"it has column mapping \(delta\.columnMapping\.mode=name\)"):
        lakecommit.files(delta.location)


def test_a_feature_that_is_not_known_is_refused_by_its_name(delta):
    put_version(delta, 2, protocol("catalogManaged"))
    with pytest.raises(UnsupportedTable, match="its readers have to know catalogManaged"):
        lakecommit.files(delta.location)
    # Its newest rows are not in the log, although Delta lists it among the features of writers.
    writers = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["coordinatedCommits-preview"]}
    put_version(delta, 3, {"protocol": writers})
    with pytest.raises(UnsupportedTable, match="its readers have to know coordinatedCommits-preview"):
        lakecommit.files(delta.location)


def test_partition_values_that_no_path_has_are_refused(tmp_path):
    made = Lake.at(str(tmp_path / "delta"))
    asyncio.run(epoch(made, made.committer(), 0, ["a"]))
    add = {"path": "b7/x.parquet", "partitionValues": {"text": "b"}, "size": 9, "modificationTime": 1}
    put_version(made, 2, {"add": {**add, "dataChange": True}})
    with pytest.raises(UnsupportedTable, match=r"partition columns are not in the path of b7/x\.parquet"):
        lakecommit.files(made.location)


def test_files_of_a_table_that_was_cloned_without_them(delta):
    logged = ["s3a://other/a%20b/1.parquet", "file:///data/a%2520b/2.parquet", "/abs/x%20y.parquet"]
    for number, path in enumerate(logged):
        add = {"path": path, "partitionValues": {}, "size": 9, "modificationTime": 1, "dataChange": True}
        put_version(delta, 2 + number, {"add": add})
    found = lakecommit.files(delta.location)
    assert {"s3://other/a b/1.parquet", "/data/a%20b/2.parquet", "/abs/x y.parquet"} < set(found)


@pytest.mark.parametrize(
    ("location", "key", "expected"),
    [
        ("s3a://b/t", "k=a%3Ab/x", "s3://b/t/k=a%3Ab/x"),
        ("s3://b", "x", "s3://b/x"),
        ("/data/t", "x y", "/data/t/x y"),
        ("abfss://c@a.dfs.core.windows.net/t", "x", "abfss://c@a.dfs.core.windows.net/t/x"),
    ],
)
def test_locations_are_spelled_as_readers_do(location, key, expected):
    assert reading.location_below(location, key) == expected
