"""Rows of files: columns by name and by id, wider types, splits, deleted rows, and what a file lacks."""

from __future__ import annotations

import base64
import datetime
import json
import os
import zlib
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from lakecommit.errors import CorruptState, InvalidInput, UnsupportedTable, VersionsGone
from lakecommit.expressions.bound import Session
from lakecommit.reading import rows as reading_rows
from lakecommit.reading.wanted import given_schema
from lakecommit.schema import parse, to_json
from lakecommit.state.lease_layout import CutName

from .files import array, mapping, read, rows, schema_of, struct, write

UTC = datetime.timezone.utc


def one(tmp_path, column: pa.Array, kind, **options):
    """The values of a column of a file, read as a column of this type of the table."""
    file = write(tmp_path, "a.parquet", pa.table({"x": column}), **options)
    return [row["x"] for row in rows(tmp_path, file, schema_of(x=kind))]


WIDER = [
    (pa.array([1, None], pa.int8()), "short", [1, None]),
    (pa.array([1], pa.int16()), "integer", [1]),
    (pa.array([-1], pa.int32()), "long", [-1]),
    (pa.array([1], pa.int32()), "double", [1.0]),
    (pa.array([1.5], pa.float32()), "double", [1.5]),
    (pa.array([7], pa.int32()), "decimal(12,2)", [Decimal("7.00")]),
    (pa.array([2**62], pa.int64()), "decimal(20,0)", [Decimal(2**62)]),
    (pa.array([Decimal("1.50")], pa.decimal128(3, 2)), "decimal(10,4)", [Decimal("1.5000")]),
    (pa.array([10], pa.date32()), "timestamp_ntz", [datetime.datetime(1970, 1, 11)]),
    (pa.array([1], pa.int32()), "byte", [1]),
    (pa.array([b"text"]), "string", ["text"]),
    (pa.array(["text"]), "binary", [b"text"]),
    (pa.array(["text"], pa.large_string()), "string", ["text"]),
    (pa.array(["a", "a"]).dictionary_encode(), "string", ["a", "a"]),
    (pa.array(["a", None, "b" * 20], pa.string_view()), "string", ["a", None, "b" * 20]),
    (pa.array([b"a"], pa.binary_view()), "binary", [b"a"]),
    (pa.array([["a", None], None], pa.list_(pa.string_view())), array("string"), [["a", None], None]),
    (pa.array([1], pa.timestamp("ms", "UTC")), "timestamp", [datetime.datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)]),
    (pa.array([1], pa.timestamp("us")), "timestamp", [datetime.datetime(1970, 1, 1, 0, 0, 0, 1, UTC)]),
    (pa.array([1500], pa.timestamp("ns")), "timestamp_ntz", [datetime.datetime(1970, 1, 1, 0, 0, 0, 1)]),
    (pa.array([None], pa.null()), "long", [None]),
    (pa.array([[1, None], None], pa.list_(pa.int32())), array("long"), [[1, None], None]),
    (pa.array([[1]], pa.large_list(pa.int32())), array("long"), [[1]]),
    (pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int32())), mapping("string", "long"), [[("a", 1)], None]),
]


@pytest.mark.parametrize(("column", "kind", "values"), WIDER, ids=lambda each: str(getattr(each, "type", ""))[:40])
def test_values_become_those_of_the_tables_type(tmp_path, column, kind, values):
    assert one(tmp_path, column, kind) == values


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([1.5]), "float"),
        (pa.array([1], pa.int64()), "double"),
        (pa.array([1], pa.int64()), "string"),
        (pa.array(["1"]), "long"),
        (pa.array([1], pa.timestamp("us", "UTC")), "timestamp_ntz"),
        (pa.array([{"a": 1}]), "long"),
        (pa.array([1]), array("long")),
        (pa.array([True]), "integer"),
    ],
)
def test_a_type_that_is_none_of_the_tables_is_refused_by_column(tmp_path, column, kind):
    with pytest.raises(UnsupportedTable, match=r"column x is .* in a file and .* in the table"):
        one(tmp_path, column, kind)


def test_a_value_that_does_not_fit_is_damage(tmp_path):
    with pytest.raises(CorruptState, match="column x has a value that is no tinyint"):
        one(tmp_path, pa.array([300], pa.int32()), "byte")


def test_times_of_96_bits_are_moments(tmp_path):
    far = [-62135596800_000_000, 253402300799_999_999]
    file = write(
        tmp_path, "a.parquet", pa.table({"x": pa.array(far, pa.timestamp("us"))}), use_deprecated_int96_timestamps=True
    )
    (batch,) = read(tmp_path, file, schema_of(x="timestamp"))
    assert batch.column(0).cast(pa.int64()).to_pylist() == far
    assert batch.schema.field(0).type == pa.timestamp("us", "UTC")


def test_special_numbers_stay(tmp_path):
    values = one(tmp_path, pa.array([float("nan"), -0.0, float("inf")], pa.float32()), "double")
    assert list(map(str, values)) == ["nan", "-0.0", "inf"]


LEGACY = [
    ({"org.apache.spark.legacyDateTime": ""}, True),
    ({"org.apache.spark.legacyINT96": ""}, True),
    ({"org.apache.spark.version": "2.4.8"}, True),
    ({"org.apache.spark.version": "3.5.0"}, False),
    ({}, False),
]


@pytest.mark.parametrize(("metadata", "refused"), LEGACY)
@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([-141_428], pa.date32()), "date"),
        (pa.array([[-2_208_988_800_000_001]], pa.list_(pa.timestamp("us", "UTC"))), array("timestamp")),
        (pa.array([{"a": -141_428}], pa.struct([("a", pa.date32())])), struct(a="date")),
    ],
)
def test_old_times_in_the_legacy_calendar_are_refused(tmp_path, metadata, refused, column, kind):
    old = pa.table({"x": column, "y": [1]}).replace_schema_metadata(metadata)
    file = write(tmp_path, "a.parquet", old)
    schema = schema_of(x=kind, y="long")
    if refused:
        with pytest.raises(UnsupportedTable, match=r"a\.parquet has old times .*org\.apache\.spark\.legacyDateTime"):
            rows(tmp_path, file, schema)
        assert rows(tmp_path, file, schema, wanted=schema_of(y="long")) == [{"y": 1}]
    else:
        assert len(rows(tmp_path, file, schema)) == 1


@pytest.mark.parametrize(
    ("version", "int96", "refused"), [("3.0.3", True, True), ("3.0.3", False, False), ("3.1.1", True, False)]
)
def test_old_times_of_96_bits_are_in_the_legacy_calendar_for_longer(tmp_path, version, int96, refused):
    moments = pa.array([-2_208_988_800_000_001], pa.timestamp("us", None if int96 else "UTC"))
    old = pa.table({"x": moments, "d": pa.array([-141_428], pa.date32())})
    old = old.replace_schema_metadata({"org.apache.spark.version": version})
    file = write(tmp_path, "a.parquet", old, use_deprecated_int96_timestamps=int96)
    schema = schema_of(x="timestamp", d="date")
    if refused:
        with pytest.raises(UnsupportedTable, match="has old times in column x"):
            rows(tmp_path, file, schema)
        assert len(rows(tmp_path, file, schema, wanted=schema_of(d="date"))) == 1
    else:
        assert len(rows(tmp_path, file, schema)) == 1


def test_bounds_in_the_legacy_calendar_leave_nothing_out(tmp_path):
    old = pa.table({"x": pa.array([-141_428], pa.date32())}).replace_schema_metadata(dict(LEGACY[0][0]))
    file = write(tmp_path, "a.parquet", old)
    with pytest.raises(UnsupportedTable, match="has old times in column x"):
        rows(tmp_path, file, schema_of(x="date"), where="x < date '1582-10-01'")


def test_later_times_are_the_same_in_both_calendars(tmp_path):
    new = pa.table({"x": pa.array([-141_427, None], pa.date32())}).replace_schema_metadata(dict(LEGACY[0][0]))
    file = write(tmp_path, "a.parquet", new)
    assert rows(tmp_path, file, schema_of(x="date")) == [{"x": datetime.date(1582, 10, 15)}, {"x": None}]


def named(kind, name, number):
    return {
        "type": kind,
        "metadata": {"delta.columnMapping.physicalName": name, "delta.columnMapping.id": number},
    }


def with_id(name, kind, number):
    return pa.field(name, kind, metadata={b"PARQUET:field_id": str(number).encode()})


MAPPED = schema_of(
    a=named("long", "col-1", 1),
    s=named(struct(x=named("string", "col-3", 3), y=named("long", "col-4", 4)), "col-2", 2),
    gone=named("string", "col-9", 9),
)


def test_columns_are_found_by_their_physical_names(tmp_path):
    inner = pa.array([{"col-4": 5, "col-3": "x"}, None])
    file = write(tmp_path, "a.parquet", pa.table({"col-2": inner, "col-1": [1, 2], "a": [8, 9]}))
    assert rows(tmp_path, file, MAPPED) == [
        {"a": 1, "s": {"x": "x", "y": 5}, "gone": None},
        {"a": 2, "s": None, "gone": None},
    ]


def test_columns_are_found_by_their_ids(tmp_path):
    inner = pa.struct([with_id("q", pa.int64(), 4), with_id("r", pa.string(), 3)])
    schema = pa.schema([with_id("b", inner, 2), with_id("c", pa.int64(), 1), with_id("d", pa.int64(), 7)])
    file = write(tmp_path, "a.parquet", pa.table({"b": [{"q": 5, "r": "x"}], "c": [1], "d": [2]}, schema=schema))
    assert rows(tmp_path, file, MAPPED, by="id") == [{"a": 1, "s": {"x": "x", "y": 5}, "gone": None}]


def test_a_file_without_ids_is_not_taken_for_one_without_columns(tmp_path):
    file = write(tmp_path, "a.parquet", pa.table({"col-1": [1]}))
    with pytest.raises(CorruptState, match="has no field ids"):
        rows(tmp_path, file, MAPPED, by="id")


def test_names_in_another_case_are_found_unless_there_are_two(tmp_path):
    file = write(tmp_path, "a.parquet", pa.table({"ID": [1], "x.y": [2], "x": [{"y": 3}]}))
    table = schema_of(id="long", **{"x.y": "long"}, x=struct(y="long"))
    assert rows(tmp_path, file, table) == [{"id": 1, "x.y": 2, "x": {"y": 3}}]
    file = write(tmp_path, "b.parquet", pa.table({"ID": [1], "Id": [2]}))
    with pytest.raises(CorruptState, match="differ from id in case only"):
        rows(tmp_path, file, schema_of(id="long"))


def test_a_part_of_a_struct_can_be_read(tmp_path):
    nested = pa.array([[{"a": 1, "b": "x"}, None], None, []])
    file = write(tmp_path, "a.parquet", pa.table({"l": nested}), row_group_size=2)
    table, wanted = schema_of(l=array(struct(a="long", b="string"))), schema_of(l=array(struct(b="string")))
    assert rows(tmp_path, file, table, wanted=wanted) == [{"l": [{"b": "x"}, None]}, {"l": None}, {"l": []}]


PARTITIONS = [
    ("string", "a b", "a b"),
    ("string", "", None),
    ("long", "-5", -5),
    ("byte", "5", 5),
    ("boolean", "true", True),
    ("double", "1.5", 1.5),
    ("float", "-Infinity", float("-inf")),
    ("date", "2024-02-29", datetime.date(2024, 2, 29)),
    ("timestamp", "2024-01-01T12:00:00.000001Z", datetime.datetime(2024, 1, 1, 12, 0, 0, 1, UTC)),
    ("timestamp", "2024-07-01 12:00:00", datetime.datetime(2024, 7, 1, 10, tzinfo=UTC)),
    ("timestamp_ntz", "2024-01-01 12:00:00.5", datetime.datetime(2024, 1, 1, 12, 0, 0, 500000)),
    ("decimal(10,2)", "1.5", Decimal("1.50")),
    ("decimal(38,0)", "1234567890" * 3 + "12345678", Decimal("1234567890" * 3 + "12345678")),
    ("decimal(38,38)", "-0." + "123456789" * 4 + "12", Decimal("-0." + "123456789" * 4 + "12")),
    ("binary", "é", "é".encode()),
]


@pytest.mark.parametrize(("kind", "text", "value"), PARTITIONS)
def test_partition_values(tmp_path, kind, text, value):
    file = replace(write(tmp_path, "a.parquet", pa.table({"x": [1, 2]})), partition_values={"p": text})
    zone = Session(zone="Europe/Berlin")
    found = rows(tmp_path, file, schema_of(p=kind, x="long"), partitions=("p",), session=zone)
    assert found == [{"p": value, "x": 1}, {"p": value, "x": 2}]


def test_partition_values_that_cannot_be_told_are_refused(tmp_path):
    file = replace(write(tmp_path, "a.parquet", pa.table({"x": [1]})), partition_values={"p": "2024-01-01 12:00:00"})
    with pytest.raises(UnsupportedTable, match="does not say its time zone"):
        rows(tmp_path, file, schema_of(p="timestamp", x="long"), partitions=("p",), session=Session())


def test_partition_columns_in_the_case_of_a_schema_that_was_given(tmp_path):
    file = replace(write(tmp_path, "a.parquet", pa.table({"x": [1]})), partition_values={"p": "7"})
    table = schema_of(p="long", x="long")
    given = to_json(given_schema(table, parse(schema_of(P="long", X="long"))))
    assert rows(tmp_path, file, table, wanted=given, partitions=("p",)) == [{"P": 7, "X": 1}]
    assert rows(tmp_path, file, table, wanted=given, partitions=("p",), where="p = 7") == [{"P": 7, "X": 1}]


def test_partition_columns_alone(tmp_path):
    file = replace(write(tmp_path, "a.parquet", pa.table({"x": range(100_000)})), partition_values={"p": "7"})
    table = schema_of(p="long", x="long")
    batches = read(tmp_path, file, table, wanted=schema_of(p="long"), partitions=("p",))
    assert [batch.num_rows for batch in batches] == [reading_rows.BATCH_ROWS, 100_000 - reading_rows.BATCH_ROWS]
    assert batches[1].column(0).to_pylist()[:2] == [7, 7]


@pytest.mark.parametrize("split", [50, 1000, 5000, 2**40])
def test_splits_have_every_row_once_and_in_order(tmp_path, split):
    table = pa.table({"x": range(10_000), "y": [f"text {n}" for n in range(10_000)]})
    file = write(tmp_path, "a.parquet", table, row_group_size=700)
    assert [row["x"] for row in rows(tmp_path, file, schema_of(x="long"), split=split)] == list(range(10_000))


def test_batches_are_bounded_in_rows_and_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(reading_rows, "BATCH_BYTES", 10_000)
    texts = ["x" * 100] * 2000 + ["y" * 5000] * 20
    file = write(tmp_path, "a.parquet", pa.table({"x": texts}), use_dictionary=False, compression="none")
    batches = read(tmp_path, file, schema_of(x="string"))
    assert sum(batch.num_rows for batch in batches) == len(texts)
    assert max(batch.nbytes for batch in batches) <= 2 * 10_000 + 200


def bitmap(*numbers: int) -> bytes:
    return (1681511377).to_bytes(4, "little") + BitMap64(numbers).serialize()


def stored(directory, numbers, *, lead=b"\x01", spoil=lambda body: body, rows=None, size=None) -> str:
    body = bitmap(*numbers)
    whole = len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    (directory / "dv.bin").write_bytes(lead + spoil(whole))
    at = len(lead)
    said = {"rows": len(numbers) if rows is None else rows, "path": "dv.bin", "at": at, "size": size or len(body)}
    return json.dumps(said)


DELETED = (0, 5, 699, 700, 9_999)


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("split", [500, 2**40])
def test_deleted_rows_are_left_out(tmp_path, inline, split):
    file = write(tmp_path, "a.parquet", pa.table({"x": range(10_000)}), row_group_size=700)
    vector = stored(tmp_path, DELETED, lead=b"\x01other vectors")
    if inline:
        vector = json.dumps({"rows": len(DELETED), "inline": base64.b64encode(bitmap(*DELETED)).decode()})
    file = replace(file, vector=vector, vector_id="v")
    found = [row["x"] for row in rows(tmp_path, file, schema_of(x="long"), split=split)]
    assert found == [number for number in range(10_000) if number not in DELETED]


def test_deleted_rows_of_a_file_that_has_views_of_texts(tmp_path):
    texts = [f"text {number}" for number in range(100)]
    table = pa.table({"x": pa.array(texts, pa.string_view()), "l": pa.array([[each] for each in texts])})
    table = table.set_column(1, "l", table["l"].cast(pa.list_(pa.string_view())))
    file = replace(write(tmp_path, "a.parquet", table), vector=stored(tmp_path, range(1, 100)), vector_id="v")
    assert rows(tmp_path, file, schema_of(x="string", l=array("string"))) == [{"x": "text 0", "l": ["text 0"]}]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"rows": 4}, "it deletes 5 rows and the log says 4"),
        ({"size": 7}, "bytes and the log says 7"),
        ({"spoil": lambda body: body[:-1] + bytes([body[-1] ^ 1])}, "its checksum is another"),
        ({"spoil": lambda body: body[:20] + bytes([body[20] ^ 1]) + body[21:]}, "its checksum is another"),
        ({"spoil": lambda body: body[:-5]}, "is cut off"),
    ],
)
def test_a_vector_that_is_not_what_was_written_is_damage(tmp_path, options, problem):
    file = write(tmp_path, "a.parquet", pa.table({"x": range(10_000)}))
    file = replace(file, vector=stored(tmp_path, DELETED, **options), vector_id="v")
    with pytest.raises(CorruptState, match=problem):
        rows(tmp_path, file, schema_of(x="long"))


def test_without_the_package_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyroaring", None)
    file = write(tmp_path, "a.parquet", pa.table({"x": [1]}))
    with pytest.raises(InvalidInput, match=r"pip install 'lakecommit\[vectors\]'"):
        rows(tmp_path, replace(file, vector=stored(tmp_path, (0,))), schema_of(x="long"))


def test_a_file_that_nobody_recorded_as_gone(tmp_path):
    file = write(tmp_path, "a.parquet", pa.table({"x": [1]}))
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(VersionsGone, match=r"a\.parquet of .* is gone, which version 7 needs: nobody recorded it"):
        rows(tmp_path, file, schema_of(x="long"))


def test_a_file_that_a_vacuum_took_names_its_cut_its_time_and_the_lease_that_the_reader_had(tmp_path):
    file = write(tmp_path, "a.parquet", pa.table({"x": [1]}))
    (tmp_path / "a.parquet").unlink()
    for version in (7, 9):
        cut = tmp_path / CutName(version, f"{version:032x}").path
        cut.parent.mkdir(parents=True, exist_ok=True)
        cut.write_bytes(b"{}")
        os.utime(cut, (1_767_225_600, 1_767_225_600))
    said = rf"versions up to 9 removed, .*/cuts/0+9-{9:032x}\.json .* at 2026-01-01T00:00:00\+00:00"
    with pytest.raises(VersionsGone, match=rf"{said}; read a newer version, and hold a lease"):
        rows(tmp_path, file, schema_of(x="long"))
    with pytest.raises(VersionsGone, match=rf"{said}\. When the stream planned .* it had lease L; .* longer leaseTtl"):
        rows(tmp_path, file, schema_of(x="long"), kept_by="lease L")


def test_a_file_that_deltas_vacuum_took_names_its_version(tmp_path):
    file = write(tmp_path, "a.parquet", pa.table({"x": [1]}))
    (tmp_path / "a.parquet").unlink()
    log = tmp_path / "_delta_log"
    log.mkdir()
    for version in range(10):
        said = {"operation": "VACUUM START" if version in (3, 8) else "WRITE", "engineInfo": "Spark"}
        (log / f"{version:020d}.json").write_text(json.dumps({"commitInfo": said}) + "\n")
    with pytest.raises(VersionsGone, match=r"version 8 records a vacuum \(Spark\)"):
        rows(tmp_path, file, schema_of(x="long"))


def test_a_file_that_is_none_is_damage(tmp_path):
    file = write(tmp_path, "a.parquet", pa.table({"x": [1]}))
    (tmp_path / "a.parquet").write_bytes(b"PAR1 but no more")
    with pytest.raises(CorruptState, match=r"a\.parquet is no Parquet file"):
        rows(tmp_path, file, schema_of(x="long"))


def test_files_elsewhere_are_read_by_their_uris(tmp_path):
    other = write(tmp_path / "other place", "a.parquet", pa.table({"x": [1]}))
    uri = "file:" + str(tmp_path / "other place" / "a.parquet").replace(" ", "%20")
    assert rows(tmp_path / "table", replace(other, path=uri), schema_of(x="long")) == [{"x": 1}]
