"""The model of the reader: which entries it needs, by which interval, and what it makes of their lines."""

from __future__ import annotations

import pytest

from tests.spark_log.entries import SinkFile, decode, encode, number_of
from tests.spark_log.reader import Unreadable, committed_files, inferred_interval
from tests.spark_log.shapes import SHAPES

LINE = (
    '{"path":"file:///t/a%20b.parquet","size":3,"isDir":false,"modificationTime":1700000000000,"blockReplication":1,'
    '"blockSize":33554432,"action":"add"}'
)


def file(number):
    return SinkFile(f"file:///t/{number}.parquet", 3, 1)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_what_is_read(shape):
    log = shape.log(file)
    if shape.reads is None:
        with pytest.raises(Unreadable):
            committed_files(log, shape.setting)
    else:
        assert committed_files(log, shape.setting) == [file(number).path for number in shape.reads]


@pytest.mark.parametrize(
    ("compacts", "setting", "interval"),
    [
        ([], 10, 10),
        ([], 3, 3),
        ([9], 10, 10),
        ([9], 100, 10),
        ([19], 10, 20),
        ([29], 10, 10),
        ([30], 10, 31),
        ([11], 5, 6),
        ([11], 6, 12),
        ([19, 39], 10, 20),
        ([9, 19, 39], 10, 20),
        ([0, 1], 10, 1),
    ],
)
def test_the_interval_is_inferred_from_the_compacts(compacts, setting, interval):
    log = {f"{number}.compact": b"v1" for number in compacts}
    assert inferred_interval(log | {"40": b"v1", ".41.compact": b"v1"}, setting) == interval


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("0", 0),
        ("12.compact", 12),
        ("+7", 7),
        ("007", 7),
        ("-1", -1),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None),
        ("5.compact.compact", None),
        ("2#1", None),
        (".lakecommit.json", None),
        ("1_0", None),
        (" 1", None),
        ("", None),
    ],
)
def test_names_are_numbers_as_java_reads_them(name, number):
    assert number_of(name) == number


def test_a_body_is_what_spark_writes():
    read = SinkFile("file:///t/a%20b.parquet", 3, 1_700_000_000_000)
    assert encode([read, read]) == f"v1\n{LINE}\n{LINE}".encode()
    assert decode(encode([read, read])) == [read, read]
    assert encode([]) == b"v1"


def test_a_body_that_is_no_utf_8_is_not_readable():
    with pytest.raises(Unreadable, match="UTF-8"):
        decode(b"v1\n" + LINE.encode().replace(b"a%20b", b"\xff"))


@pytest.mark.parametrize("value", ['"3"', "true", "null", "[]"])
def test_a_size_is_a_number(value):
    with pytest.raises(Unreadable, match="size"):
        decode(f"v1\n{LINE}".replace('"size":3', f'"size":{value}').encode())
