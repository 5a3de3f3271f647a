"""What readers ask of a Delta table: versions as they were, times, live files, and changes one by one."""

from __future__ import annotations

import base64
import json
import uuid
from typing import Any

import pytest

from lakecommit.errors import ContradictoryState, CorruptState, InvalidInput, UnsupportedTable, VersionsGone
from lakecommit.formats.delta.log import live
from lakecommit.formats.delta.read.vectors import vector_path, vector_words
from lakecommit.formats.reading import MATCHED_BY, GoneFile, ReadFile
from tests.unit.formats.delta.fakes import (
    SCHEMA,
    delta_on,
    field,
    metadata,
    parquet_checkpoint,
    protocol,
    run,
    schema_of,
    table_features,
)
from tests.unit.formats.delta.logs import LOG, VECTOR, add, classic, log_of, remove, table

NEW_SCHEMA = schema_of(field("id"), field("region", "string"), field("more", "string"))
VECTOR_ID = "uab^-aqEH.-t@S}K{vb[*k^@4"


def files(store: Any, version: int | None = None) -> dict[str, ReadFile]:
    async def read() -> dict[str, ReadFile]:
        delta = delta_on(store)
        state = await delta.at(version)
        return {file.path: file for page in [page async for page in delta.live(state)] for file in page}

    return run(read())


def changes(store: Any, version: int) -> list[Any]:
    async def read() -> list[Any]:
        delta = delta_on(store)
        return [change async for change in delta.changes(await delta.at(version))]

    return run(read())


def at(store: Any, version: int | None = None) -> Any:
    return run(delta_on(store).at(version))


def test_a_version_has_the_schema_the_protocol_and_the_id_of_then():
    store = table(
        (metadata(NEW_SCHEMA, table_id="another"), protocol(1, 4)),
        (add("a"),),
    )
    old, new = at(store, 0), at(store, 2)
    assert (old.version, old.schema, old.table_id, old.protocol.min_writer) == (0, SCHEMA, "table-1", 2)
    assert (new.version, new.schema, new.table_id, new.protocol.min_writer) == (2, NEW_SCHEMA, "another", 4)
    assert at(store) == new
    assert at(table().__class__()) is None


def test_a_version_before_the_last_checkpoint_and_after_one():
    store = log_of(classic(add("a")), (metadata(NEW_SCHEMA),), (add("c"),))
    store.objects[LOG + f"{12:020d}.checkpoint.parquet"] = b"damaged"
    store.objects[LOG + "_last_checkpoint"] = json.dumps({"version": 12, "size": 1}).encode()
    assert (at(store, 10).schema, at(store, 11).schema) == (SCHEMA, NEW_SCHEMA)
    assert sorted(files(store, 10)) == ["a"]
    assert sorted(files(store, 12)) == ["a", "c"]


@pytest.mark.parametrize(("version", "there"), [(9, "10 to 12"), (13, "10 to 12"), (-1, "10 to 12")])
def test_a_version_that_is_not_there_is_refused_with_those_that_are(version, there):
    store = log_of(classic(add("a")), (add("b"),), (add("c"),))
    for gone in range(8, 10):
        store.put_commit(gone, add("old"))
    with pytest.raises(InvalidInput, match=f"no version {version}: those from {there}"):
        at(store, version)


def test_versions_before_a_hole_cannot_be_read():
    store = log_of(classic(add("a")), (add("b"),), (add("c"),), (add("d"),))
    del store.objects[LOG + f"{11:020d}.json"]
    with pytest.raises(InvalidInput, match="has neither version 0 nor a checkpoint"):
        at(store, 12)


def timed(*times_ms: int) -> Any:
    store = table(*([] for _ in times_ms[1:]))
    store.modified_ms = {LOG + f"{number:020d}.json": at_ms for number, at_ms in enumerate(times_ms)}
    return store


@pytest.mark.parametrize(
    ("time_ms", "version"), [(100, 0), (299, 1), (300, 2), (301, 3), (302, 4), (499, 4), (500, 5), (10**15, 5)]
)
def test_the_newest_version_at_a_time_where_the_stores_clock_goes_back(time_ms, version):
    assert run(delta_on(timed(100, 200, 300, 250, 250, 500)).version_at(time_ms)) == version


def test_no_version_is_that_old():
    with pytest.raises(InvalidInput, match=r"as old as 1970-01-01T00:00:00.099\+00:00; the oldest one in the log is 0"):
        run(delta_on(timed(100, 200)).version_at(99))


@pytest.mark.parametrize(("time_ms", "version"), [(4999, 1), (5000, 2), (5999, 2), (6000, 3), (9**9, 4), (150, 0)])
def test_versions_say_their_times_from_the_one_that_begins_to(time_ms, version):
    """Before it, the times of objects count."""
    since = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": "5000",
    }
    said = [{"commitInfo": {"inCommitTimestamp": at_ms}} for at_ms in (5000, 6000, 7000)]
    enabled = (said[0], metadata(configuration=since), table_features("inCommitTimestamp"))
    store = table((), enabled, (said[1],), (said[2],))
    store.modified_ms = {LOG + f"{number:020d}.json": 100 * (number + 1) for number in range(5)}
    assert run(delta_on(store).version_at(time_ms)) == version


def test_files_as_readers_take_them():
    vector = {**VECTOR, "offset": 4}
    deleted = add("b%2520c", deletionVector=vector, stats='{"minValues":{"numRecords":1},"numRecords":9}')
    store = table((add("x=1/a%20b", stats=None, partitionValues={"x": "1"}), deleted), partitions=["x"])
    found = files(store)
    assert found["x=1/a b"] == ReadFile("x=1/a b", 1, 1, {"x": "1"})
    deleted = found["b%20c"]
    assert (deleted.rows, deleted.vector_id, deleted.partition_values) == (7, VECTOR_ID, {"x": None})
    assert deleted.id == f"{1:020d}/b%20c#{VECTOR_ID}"
    said = {"rows": 2, "path": "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin", "at": 4, "size": 34}
    assert json.loads(deleted.vector) == said


@pytest.mark.parametrize(
    ("logged", "path"),
    [
        ("s3://bucket/a%20b", "s3://bucket/a%20b"),
        ("memory://table/x/a%20b", "x/a b"),
        ("file:/elsewhere/a", "file:/elsewhere/a"),
        ("/elsewhere/a", "/elsewhere/a"),
        ("x%3A1/a", "x:1/a"),
        ("x=2020-01-01 00:00/a", "x=2020-01-01 00:00/a"),
    ],
)
def test_files_outside_of_the_table_keep_their_uris(logged, path):
    assert list(files(table((add(logged),)))) == [path]


def test_partition_values_have_the_schemas_names():
    mapped = schema_of(
        field("id", **{"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}),
        field("region", "string", **{"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "col-2"}),
    )
    head = (
        protocol(2, 5),
        metadata(mapped, partitions=["region"], configuration={"delta.columnMapping.mode": "id"}),
    )
    store = table(head, (add("a", partitionValues={"col-2": "x"}),))
    assert files(store)["a"].partition_values == {"region": "x"}
    plan = delta_on(store).read_plan(at(store))
    assert (plan.words[MATCHED_BY], plan.schema, plan.partition_columns) == ("id", mapped, ("region",))
    store.put_commit(3, metadata(mapped, partitions=["region"], configuration={"delta.columnMapping.mode": "none"}))
    plan = delta_on(store).read_plan(at(store))
    assert "columnMapping" not in plan.schema
    assert plan.words[MATCHED_BY] == "name"


def test_pages_are_small_whatever_the_table(monkeypatch):
    monkeypatch.setattr(live, "BATCH_ROWS", 10)
    store = table(*([add(f"{version}-{number}") for number in range(9)] for version in range(5)))

    async def sizes() -> list[int]:
        delta = delta_on(store)
        return [len(page) async for page in delta.live(await delta.at())]

    assert (max(run(sizes())), sum(run(sizes()))) == (10, 45)


@pytest.mark.parametrize(
    ("head", "named"),
    [
        ((table_features(reader=["unheardOf"]),), "the feature unheardOf: it is not known"),
        ((table_features(reader=["adaptiveMetadata-preview"]),), "the feature adaptiveMetadata-preview: it is not"),
        ((table_features(reader=["geospatial-dev"]),), "the feature geospatial-dev: it is not known"),
        ((table_features(reader=["catalogOwned-preview"]),), "the feature catalogOwned-preview: its newest versions"),
        ((protocol(4, 7, readerFeatures=[], writerFeatures=[]),), "protocol reader 4"),
        ((table_features(reader=["catalogManaged"]),), "the feature catalogManaged: its newest versions are in its"),
        ((table_features("coordinatedCommits-preview"),), "the feature coordinatedCommits-preview"),
        ((table_features(reader=["redirectReaderWriter-preview"]),), "redirects to another location"),
        ((metadata(provider="orc"),), "its data files are orc"),
        ((metadata(schema_of(field("v", "variant"))),), r"variantType \(column v\)"),
        (
            (metadata(schema_of(field("s", {"type": "array", "elementType": "variant", "containsNull": True}))),),
            r"variantType \(column s\)",
        ),
        ((metadata(schema_of(field("s", "string", __COLLATIONS={"s": "x"}))),), r"collations \(column s\)"),
        ((metadata(schema_of(field("s", "void"))),), "the column s has the type void"),
        (
            (protocol(2, 5), metadata(configuration={"delta.columnMapping.mode": "new"})),
            "columnMapping in the mode 'new'",
        ),
    ],
)
def test_tables_that_cannot_be_read_are_refused_by_what_is_in_the_way(head, named):
    store = table(head)
    with pytest.raises(UnsupportedTable, match=named):
        delta_on(store).read_plan(at(store))


def test_writers_features_and_a_variant_that_no_column_has_are_in_nobodys_way():
    writers = ("icebergCompatV2", "identityColumns", "redirectWriterOnly-preview", "unheardOf")
    store = table((table_features(*writers, reader=["variantType", "vacuumProtocolCheck"]),))
    assert delta_on(store).read_plan(at(store)).version == 1


def test_changes_come_one_by_one_and_say_what_went():
    vector = {**VECTOR, "offset": 4}
    store = table(
        (add("a"), {"commitInfo": {"operation": "WRITE", "timestamp": 5}}),
        (metadata(NEW_SCHEMA), add("b", dataChange=False), remove("a", dataChange=False)),
        (remove("b"), add("b", deletionVector=vector), {"cdc": {"path": "c"}}),
    )
    first, second, third = changes(store, 0)
    assert (first.version, first.committed_ms, first.operation) == (1, 5, "WRITE")
    assert [(file.path, new) for file, new in first.adds()] == [("a", True)]
    assert (first.state.schema, second.state.schema, second.state.version) == (SCHEMA, NEW_SCHEMA, 2)
    assert [(file.path, new) for file, new in second.adds()] == [("b", False)]
    assert list(second.removes()) == [GoneFile("a", "", False)]
    assert [file.vector_id for file, _ in third.adds()] == [VECTOR_ID]
    assert list(third.removes()) == [GoneFile("b", "", True)]
    assert changes(store, 3) == []


def test_a_change_is_decoded_as_its_files_are_asked_for():
    store = table((add("a"), add("b")))
    store.objects[LOG + f"{1:020d}.json"] += b'{"add":{"path":"c"}}\n'
    (change,) = changes(store, 0)
    adds = change.adds()
    assert [next(adds)[0].path, next(adds)[0].path] == ["a", "b"]
    with pytest.raises(CorruptState, match="is damaged"):
        next(adds)


def test_versions_that_the_log_no_longer_has_are_named():
    store = log_of(classic(add("a")), (add("b"),), (add("c"),), (add("d"),))
    for gone in (11, 12):
        del store.objects[LOG + f"{gone:020d}.json"]
    with pytest.raises(VersionsGone, match="versions 11 to 12 of memory://table are no longer in the log"):
        changes(store, 10)


def test_a_checkpoint_alone_after_a_version_tells_that_some_are_gone():
    store = log_of(classic(add("a")))
    store.objects[LOG + f"{12:020d}.checkpoint.parquet"] = b"not read"
    with pytest.raises(VersionsGone, match="versions 11 and later"):
        changes(store, 10)


def test_a_version_that_goes_between_its_listing_and_its_reading_is_named():
    store = table((add("a"),), (add("b"),))
    old = at(store, 0)
    listed = store.list

    async def list_then_clean(prefix: str, *, start_after: str | None = None) -> Any:
        async for page in listed(prefix, start_after=start_after):
            store.objects.pop(LOG + f"{1:020d}.json", None)
            yield page

    async def read() -> None:
        async for _ in delta_on(store).changes(old):
            pass

    store.list = list_then_clean
    with pytest.raises(VersionsGone, match="version 1 of memory://table is no longer"):
        run(read())


def test_a_version_that_comes_while_a_listing_is_made_is_not_taken_for_one_that_is_gone():
    store = table((add("a"),), (add("b"),))
    late = [LOG + f"{1:020d}.json"]
    listed = store.list

    async def list_without(prefix: str, *, start_after: str | None = None) -> Any:
        missed = late.pop() if late and start_after else ""
        async for page in listed(prefix, start_after=start_after):
            yield [info for info in page if info.path != missed]

    old = at(store, 0)
    store.list = list_without

    async def read() -> list[int]:
        return [change.version async for change in delta_on(store).changes(old)]

    assert run(read()) == [1, 2]
    assert late == []


def test_a_log_that_was_cleaned_up_to_the_version_goes_on():
    store = log_of(classic(add("a")), (add("b"),), (add("c"),))
    old = at(store, 11)
    store.objects[LOG + f"{11:020d}.checkpoint.parquet"] = parquet_checkpoint(protocol(), metadata())
    for gone in (10, 11):
        del store.objects[LOG + f"{gone:020d}.json"]

    async def read() -> list[int]:
        return [change.version async for change in delta_on(store).changes(old)]

    assert run(read()) == [12]


@pytest.mark.parametrize("table_id", ["table-1", "another"])
def test_a_log_that_is_not_the_one_that_was_read_is_refused(table_id):
    store = table((add("a"),))
    old = at(store, 0)
    store.put_commit(0, protocol(), metadata(table_id=table_id), {"commitInfo": {}})

    async def read() -> None:
        async for _ in delta_on(store).changes(old):
            pass

    with pytest.raises(ContradictoryState, match=r"written over|made anew"):
        run(read())


def test_many_versions_are_followed_page_by_page():
    store = table(*([add(str(version))] for version in range(50)))
    store.page_size = 7
    assert [change.version for change in changes(store, 0)] == list(range(1, 51))


def test_vectors():
    id_ = uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
    assert vector_path("u", "ab^-aqEH.-t@S}K{vb[*k^") == f"ab/deletion_vector_{id_}.bin"
    assert vector_path("u", "^-aqEH.-t@S}K{vb[*k^") == f"deletion_vector_{id_}.bin"
    assert vector_path("p", "s3://b/x.bin") == "s3://b/x.bin"
    inline = {
        "storageType": "i",
        "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "cardinality": 6,
    }
    said = json.loads(vector_words({**inline, "sizeInBytes": 40}))
    assert (said["rows"], len(base64.b64decode(said["inline"])), said.keys()) == (6, 40, {"rows", "inline"})
    for broken in ({**inline, "storageType": "x", "sizeInBytes": 1}, {**VECTOR, "pathOrInlineDv": "short"}, {}):
        with pytest.raises(CorruptState, match="deletion vector that is none"):
            vector_words(broken)
