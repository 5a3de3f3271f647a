"""The option `where`: which rows meet it, which files and row groups it leaves out, and what is refused."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakecommit.errors import InvalidInput
from lakecommit.expressions.bound import Session
from lakecommit.formats.reading import ReadFile
from lakecommit.reading.condition import condition
from lakecommit.reading.skipping import kept_files
from lakecommit.schema import parse

from .files import array, read, rows, schema_of, struct, write

TABLE = schema_of(
    id="long",
    x="double",
    s="string",
    d="date",
    t="timestamp",
    n="timestamp_ntz",
    m="decimal(10,2)",
    long="decimal(38,2)",
    f="float",
    p="string",
)


def asked(text, schema=TABLE, **session):
    return condition(text, parse(schema), Session(**session))


def kept(text, *stats, zone="UTC", partitions=("p",), values=None):
    """Which files with these statistics are read."""
    files = [
        ReadFile(str(number), 1, 1, values[number] if values else {}, stats=None if each is None else json.dumps(each))
        for number, each in enumerate(stats)
    ]
    return [int(file.path) for file in kept_files(asked(text, zone=zone), files, partitions)]


def bounds(column, low, high, nulls=0, rows=10):
    return {"numRecords": rows, "minValues": {column: low}, "maxValues": {column: high}, "nullCount": {column: nulls}}


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("id = 5", [0, 2, 3]),
        ("5 = id", [0, 2, 3]),
        ("id < 3", [0, 2, 3]),
        ("3 > id", [0, 2, 3]),
        ("id <= 0", [0, 2, 3]),
        ("id < 0", [2, 3]),
        ("id > 10", [1, 2, 3]),
        ("id >= 10", [0, 1, 2, 3]),
        ("id > 100", [2, 3]),
        ("id between 11 and 12", [2, 3]),
        ("id > 2.5", [0, 1, 2, 3]),
        ("id is null", [2, 3, 4]),
        ("id is not null", [0, 1, 2, 3]),
        ("id <> 5", [0, 1, 2, 3, 4]),
        ("id <=> 5", [0, 1, 2, 3, 4]),
        ("id in (1000)", [0, 1, 2, 3, 4]),
        ("id > 10 and id < 15", [2, 3]),
    ],
)
def test_files_are_left_out_by_their_bounds(text, files):
    found = kept(
        text, bounds("id", 0, 10), bounds("id", 20, 100), None, {"numRecords": 1}, bounds("id", None, None, 10, 10)
    )
    assert found == files


MIDNIGHT = "2024-01-01T00:00:00.000"
OFFSETS = ("2023-12-31T23:00:00.000-01:00", "2024-01-01T01:00:00.000+01:00")
NEVER = [
    ("x > 1e300", bounds("x", 0.0, 1.0)),
    ("x >= 5.0", bounds("x", "NaN", "NaN")),
    ("x = 0.0", bounds("x", -0.0, -0.0)),
    ("x < 5", bounds("x", "NaN", "NaN")),
    ("x < 5", bounds("x", math.nan, math.nan)),
    ("x > 0", bounds("x", "-Infinity", "Infinity")),
    ("s > '" + "a" * 32 + "b'", bounds("s", "a", "a" * 32)),
    (
        "t = timestamp '2024-01-01 00:00:00.000999'",
        bounds("t", MIDNIGHT + "Z", MIDNIGHT + "Z"),
    ),
    (
        "t > timestamp '2024-01-01 00:00:00.0005'",
        bounds("t", *OFFSETS),
    ),
    ("n = timestamp_ntz '2024-01-01 00:00:00.0009'", bounds("n", MIDNIGHT, MIDNIGHT)),
    ("d = date '2024-01-01'", bounds("d", "2024-01-01", "2024-01-01")),
    ("m = 12345678.91", bounds("m", 12345678.91, 12345678.91)),
    ("id = 5", {"minValues": {"id": "text"}, "maxValues": [], "nullCount": 3, "numRecords": "x"}),
    ("id = 5", {"minValues": {"id": {"a": 1}}, "maxValues": {"id": True}}),
    ("t < timestamp '2024-01-01 00:00:00'", bounds("t", "what", "when")),
    ("f < 16777217", bounds("f", 16777216.0, 16777216.0)),
    # A float that has become a double.
    ("x < -0.1", bounds("x", -0.1, -0.1)),
    ("x = -0.10000000149011612", bounds("x", -0.1, -0.1)),
    # Decimals as doubles.
    ("long = 12345678901234567.89", bounds("long", 1.2345678901234568e16, 1.2345678901234568e16)),
    ("long = -12345678901234567.89", bounds("long", -1.2345678901234568e16, -1.2345678901234568e16)),
    ("long > 1000000000000000000", bounds("long", 1e18, 1e18)),
    ("long < 1000000000000000000", bounds("long", 1e18, 1e18)),
    ("long > 9999999999999999999999999999999999.9", bounds("long", 0, 1e36)),
]


@pytest.mark.parametrize(("text", "stats"), NEVER, ids=[str(number) for number in range(len(NEVER))])
def test_a_file_that_may_match_is_never_left_out(text, stats):
    assert kept(text, stats, None) == [0, 1]


def test_statistics_that_are_no_json_leave_nothing_out():
    file = ReadFile("a", 1, 1, stats="{not json")
    assert kept_files(asked("id = 1"), [file], ()) == [file]


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        (
            "t >= timestamp '2024-01-01 00:00:00.001'",
            bounds("t", MIDNIGHT + "Z", MIDNIGHT + "Z"),
        ),
        ("t < timestamp '2024-01-01 00:00:00'", bounds("t", MIDNIGHT + "Z", MIDNIGHT + "Z")),
        ("d > date '2024-01-01'", bounds("d", "2023-01-01", "2024-01-01")),
        ("m < 1.5", bounds("m", 1.50, 2)),
        ("x < 1", bounds("x", 1.0, 2.0)),
        ("x < -1e300", bounds("x", -1e300, 2.0)),
        ("long > 1234567890123.45", bounds("long", 1.5, 1234567890123.45)),
        ("long > 12345678901234600.0", bounds("long", 1.5, 1.2345678901234568e16)),
        ("s = 'b'", bounds("s", "c", "d")),
        ("s > 'é'", bounds("s", "a", "z")),
    ],
)
def test_a_file_that_cannot_match_is_left_out(text, left_out):
    assert kept(text, left_out, None) == [1]


def test_a_time_without_a_zone_leaves_nothing_out_where_that_is_not_known():
    stats = bounds("t", MIDNIGHT + "Z", MIDNIGHT + "Z")
    assert kept("t > timestamp '2030-01-01 00:00:00'", stats, zone=None) == [0]
    assert kept("t > timestamp '2030-01-01 00:00:00'", stats, zone="Asia/Tokyo") == []


def test_partition_values_leave_out_whatever_the_condition():
    values = [{"p": "a"}, {"p": None}, {"p": "b"}]
    for text, files in [
        ("p = 'a'", [0]),
        ("p <> 'a'", [2]),
        ("p is null", [1]),
        ("p in ('b', 'c')", [2]),
        ("not (p = 'a')", [2]),
        ("p <=> 'a'", [0]),
        ("p = 'a' and id > 7", [0]),
        ("p = 'c' and p is not null and id > 7", []),
    ]:
        assert kept(text, None, None, None, values=values) == files, text


@pytest.mark.parametrize(
    "text", ["p = 16777217", "p in (16777217)", "not (p < 16777217)", "p <=> 16777217", "q = 16777216F", "p = q"]
)
def test_partition_values_leave_nothing_out_where_it_depends_on_the_session(text):
    """Without ANSI, Spark compares a float and a whole number as floats."""
    file = ReadFile("a", 1, 1, {"p": "16777216.0", "q": "16777217"})
    table = schema_of(p="float", q="integer")
    assert kept_files(asked(text, table), [file], ("p", "q")) == [file]
    assert kept_files(asked("p = 1.5", table), [file], ("p", "q")) == []


def test_statistics_are_asked_by_physical_names():
    schema = schema_of(id={"type": "long", "metadata": {"delta.columnMapping.physicalName": "col-1"}})
    file = ReadFile("a", 1, 1, stats=json.dumps(bounds("col-1", 0, 1)))
    assert kept_files(asked("id = 5", schema), [file], ()) == []
    assert kept_files(asked("id = 1", schema), [file], ()) == [file]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id", "no condition"),
        ("1 = 1", "no column"),
        ("id = 'x' or id = 2", "OR"),
        ("zz = 1", "zz, which is not among the columns"),
        ("length(s) = 1", "LENGTH"),
        ("id + 1 = 2", r"\+"),
        ("cast(id as string) = '1'", "a cast of a column"),
        ("id = 'x'", "= of bigint and string"),
        ("id = (", r"\("),
    ],
)
def test_other_conditions_are_refused_by_what_they_have(text, said):
    with pytest.raises(InvalidInput, match=rf"option where \(.*{said}.*filter the rest with Spark"):
        asked(text)


def test_long_conditions_and_deep_ones():
    assert [part.sign for part in asked(" and ".join(["id > 1"] * 2999 + ["id < 1"])).parts] == [">"] * 2999 + ["<"]
    with pytest.raises(InvalidInput, match="is nested too deeply"):
        asked("(" * 3000 + "id = 1" + ")" * 3000)


def test_char_columns_are_refused_in_conditions():
    schema = schema_of(c={"type": "string", "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}})
    with pytest.raises(InvalidInput, match="c of the type char, which Spark pads"):
        asked("c = 'a'", schema)
    nested = {"type": struct(c="string", v="string"), "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "struct<c:char(3)>"}}
    with pytest.raises(InvalidInput, match="s of the type char, which Spark pads"):
        asked("s.c = 'a'", schema_of(s=nested))
    varying = {"type": "string", "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}}
    assert asked("c = 'a'", schema_of(c=varying)).parts[0].sign == "="


def test_rows_that_meet_it(tmp_path):
    table = pa.table({"id": [1, 2, None, 4], "s": ["a", "b", "c", None], "n": [{"y": 1}, {"y": 2}, None, {"y": 4}]})
    file = write(tmp_path, "a.parquet", table)
    schema = schema_of(id="long", s="string", n=struct(y="long"), l=array("long"))

    def found(where):
        return [row["id"] for row in rows(tmp_path, file, schema, wanted=schema_of(id="long"), where=where)]

    assert found("s > 'a'") == [2, None]
    assert found("id is null") == [None]
    assert found("n.y >= 2 and id < 4") == [2]
    assert found("l is null") == [1, 2, None, 4]
    assert found("n is null") == [None]
    assert found("ID <=> 4") == [4]


def test_row_groups_that_cannot_match_are_not_decoded(tmp_path, monkeypatch):
    file = write(tmp_path, "a.parquet", pa.table({"id": range(1000), "x": [1] * 1000}), row_group_size=100)
    batches = read(tmp_path, file, schema_of(id="long"), where="id = 250")
    assert [batch.to_pylist() for batch in batches] == [[{"id": 250}]]
    body = (tmp_path / "a.parquet").read_bytes()
    # Whatever else is decoded would be noticed.
    start = pq.read_metadata(tmp_path / "a.parquet").row_group(5).column(0).dictionary_page_offset
    (tmp_path / "a.parquet").write_bytes(body[:start] + b"\xff" * 300 + body[start + 300 :])
    assert rows(tmp_path, file, schema_of(id="long"), where="id = 250") == [{"id": 250}]
    assert rows(tmp_path, file, schema_of(id="long", gone="long"), where="gone = 1") == []
    partitioned = replace(file, partition_values={"p": "1"})
    schema = schema_of(id="long", p="long")
    assert len(rows(tmp_path, partitioned, schema, partitions=("p",), where="p = 1 and id < 3")) == 3
    assert rows(tmp_path, partitioned, schema, partitions=("p",), where="p = 2 and id < 3") == []


def test_random_conditions_leave_out_no_row(tmp_path):
    """Held against the same condition where nothing is left out."""
    chance = random.Random(7)
    choices = [math.nan, -0.0, 0.0, 1.5, math.inf, -math.inf, None, 3.0]
    values = {
        "id": [chance.choice([None, *range(10)]) for _ in range(120)],
        "x": [chance.choice(choices) for _ in range(120)],
        "s": [chance.choice([None, "", "a", "ab", "é", "z" * 40, "z" * 31]) for _ in range(120)],
    }
    table = pa.table({"id": pa.array(values["id"], pa.int64()), "x": values["x"], "s": values["s"]})
    schema = schema_of(id="long", x="double", s="string")
    grouped = write(tmp_path, "a.parquet", table, row_group_size=5)
    plain = write(tmp_path, "b.parquet", table, write_statistics=False)
    for _ in range(50):
        parts = [
            chance.choice(
                [
                    f"id {chance.choice(['<', '<=', '=', '>', '>=', '<>', '<=>'])} {chance.randrange(10)}",
                    f"x {chance.choice(['<', '<=', '=', '>', '>='])} {chance.choice(['0.0', '1.5', '-1', '2'])}",
                    f"s {chance.choice(['<', '<=', '=', '>', '>='])} '{chance.choice(['', 'a', 'b', 'é', 'z' * 35])}'",
                    f"{chance.choice(['id', 'x', 's'])} is {chance.choice(['', 'not '])}null",
                ]
            )
            for _ in range(chance.randrange(1, 3))
        ]
        where = " and ".join(parts)
        ours, theirs = (list(map(str, rows(tmp_path, each, schema, where=where))) for each in (grouped, plain))
        assert ours == theirs, where
