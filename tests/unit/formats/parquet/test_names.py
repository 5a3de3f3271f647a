"""Which numbers have a compact, and what a listing of the log says."""

from __future__ import annotations

import itertools

import pytest

from lakecommit.formats.parquet.creation import root_of
from lakecommit.formats.parquet.names import LOG, LogListing, entry_path, inferred_interval
from lakecommit.storage.base import ObjectInfo
from tests.spark_log import reader


def listing(*names: str) -> LogListing:
    return LogListing.of(ObjectInfo(f"{LOG}/{name}", 1, 0) for name in names)


def test_the_interval_is_inferred_as_spark_does():
    for compact, setting in itertools.product(range(1, 80), range(2, 30)):
        log = {f"{compact}.compact": b"v1"}
        assert inferred_interval([compact], setting) == reader.inferred_interval(log, setting), (compact, setting)
    for compacts in ((9, 19), (9, 19, 29), (19, 39)):
        log = {f"{each}.compact": b"v1" for each in compacts}
        assert inferred_interval(compacts, 10) == reader.inferred_interval(log, 10)
    assert inferred_interval([], 7) == 7


@pytest.mark.parametrize(
    ("names", "newest", "holes"),
    [
        ([], -1, ()),
        (["0", "1", "2"], 2, ()),
        (["0", "2", "5"], 5, (1, 3, 4)),
        (["9.compact", "10", "11"], 11, ()),
        (["3", "9.compact", "10", "12"], 12, (11,)),
        (["0", "2#1", ".x.tmp", "007", "-1", "1.tmp", ".0.crc"], 0, ()),
    ],
)
def test_what_a_listing_says(names, newest, holes):
    found = listing(*names)
    assert (found.newest, found.holes) == (newest, holes)


def test_records_are_told_by_their_numbers():
    assert sorted(listing(".lakecommit.json", ".lakecommit-2.json", ".lakecommit-x.json").records) == [0, 2]


def test_a_compact_is_due_exactly_at_its_number():
    assert [entry_path(number, 3) for number in range(4)] == [f"{LOG}/{name}" for name in ("0", "1", "2.compact", "3")]


@pytest.mark.parametrize(
    ("location", "read_path", "root"),
    [
        ("s3://b/t", None, "s3a://b/t"),
        ("s3://b/a dir/ü:1%", None, "s3a://b/a%20dir/ü:1%25"),
        ("s3://b", None, "s3a://b"),
        ("/data/a dir", None, "file:///data/a%20dir"),
        ("s3://b/t", "s3://b/t/", "s3://b/t"),
        ("s3://b/t", "viewfs://c/x y", "viewfs://c/x%20y"),
        ("/data/t", "file:/data/t", "file:/data/t"),
        ("/data/t", "/mnt/t", "file:///mnt/t"),
        ("abfss://c@a.dfs.core.windows.net/t", None, "abfss://c@a.dfs.core.windows.net/t"),
    ],
)
def test_the_root_is_a_uri_as_readers_have_it(location, read_path, root):
    assert root_of(location, read_path) == root
