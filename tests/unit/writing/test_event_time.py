"""The range of event times that a task keeps of each file."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakecommit.errors import InvalidInput
from lakecommit.model import DataFile
from lakecommit.schema import Field, Primitive
from lakecommit.state.codec import decode_manifest
from lakecommit.writing.attempt import write_attempt
from lakecommit.writing.encode import EncodedFile
from lakecommit.writing.parquet_file import EventTimes
from lakecommit.writing.settings import WriterSettings
from tests.lake.clocks import FakeClock
from tests.unit.writing.tools import ATTEMPT, RecordingStore, column, encode_all, plan_of, read

DAY_US = 86_400_000_000
ARROW: dict[str, pa.DataType] = {
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "date": pa.date32(),
}
UNIT_US = {"timestamp": 1, "timestamp_ntz": 1, "date": DAY_US}
SETTINGS = WriterSettings(event_time_column="ts")
# Most values go through the sort on local disk, in many runs.
SORTING = replace(SETTINGS, open_partitions=2, chunk_bytes=400, spill_bytes=1_000, spool_bytes=500)


def moments(values: Sequence[int | None], kind: str = "timestamp") -> pa.Array:
    """Raw values: microseconds, or days for a date."""
    return pa.array(values, pa.int32() if kind == "date" else pa.int64()).cast(ARROW[kind])


def rows(values: Sequence[int | None], kind: str = "timestamp", **more: list[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"v": range(len(values)), "ts": moments(values, kind), **more})


def plan(kind: str = "timestamp", partition_by: tuple[str, ...] = (), **more: str) -> Any:
    fields = [column("v", "long"), column("ts", kind), *(column(name, of) for name, of in more.items())]
    return plan_of(fields, partition_by)


def ranges(files: list[EncodedFile]) -> list[tuple[int, int] | None]:
    return [(file.event_times.min_us, file.event_times.max_us) if file.event_times else None for file in files]


@pytest.mark.parametrize("kind", ARROW)
def test_a_file_has_the_range_of_its_event_times(kind: str) -> None:
    files = encode_all([rows([7, None, 3], kind), rows([-2, 5], kind)], plan(kind), SETTINGS)
    assert ranges(files) == [(-2 * UNIT_US[kind], 7 * UNIT_US[kind])]


def test_timestamps_are_counted_in_utc_whatever_zone_they_come_in() -> None:
    at = pa.array([1_700_000_000_000_000]).cast(pa.timestamp("us", tz="Asia/Kolkata"))
    files = encode_all([pa.RecordBatch.from_pydict({"v": [0], "ts": at})], plan(), SETTINGS)
    assert ranges(files) == [(1_700_000_000_000_000, 1_700_000_000_000_000)]


def test_no_column_no_range() -> None:
    assert ranges(encode_all([rows([1, 2])], plan(), WriterSettings())) == [None]


def test_nothing_but_nulls_has_no_range() -> None:
    assert ranges(encode_all([rows([None, None])], plan(), SETTINGS)) == [None]


def test_the_column_is_found_in_any_case() -> None:
    assert ranges(encode_all([rows([1, 2])], plan(), replace(SETTINGS, event_time_column="TS"))) == [(1, 2)]


def test_a_range_spans_all_row_groups_of_a_file_also_those_of_nulls() -> None:
    files = encode_all([rows([None, None, 5, 4, None, None, 1, 9])], plan(), replace(SETTINGS, row_group_rows=2))
    assert ranges(files) == [(1, 9)]


def test_each_rolled_file_has_its_own_range() -> None:
    files = encode_all([rows([5, 1, 2, 8, None, None, 3])], plan(), replace(SETTINGS, max_records_per_file=2))
    assert ranges(files) == [(1, 5), (2, 8), None, (3, 3)]


@pytest.mark.parametrize("partition_by", [(), ("ts",)])
def test_days_beyond_the_range_of_microseconds_count_as_its_ends(partition_by: tuple[str, ...]) -> None:
    files = encode_all([rows([2**31 - 1, -(2**31)], "date")], plan("date", partition_by), SETTINGS)
    times = [moment for found in ranges(files) if found for moment in found]
    assert {min(times), max(times)} == {-(2**63), 2**63 - 1}


@pytest.mark.parametrize("limits", [SETTINGS, SORTING])
def test_each_partition_value_has_its_own_range(limits: WriterSettings) -> None:
    numbers = list(range(600))
    random.Random(1).shuffle(numbers)
    batches = [rows(numbers[at : at + 50], p=[n % 40 for n in numbers[at : at + 50]]) for at in range(0, 600, 50)]
    files = encode_all(batches, plan(partition_by=("p",), p="long"), limits)
    assert len(files) == 40
    for file, found in zip(files, ranges(files), strict=True):
        value = int(str(file.partition_values["p"]))
        assert found == (value, 560 + value)


@pytest.mark.parametrize("kind", ARROW)
@pytest.mark.parametrize("limits", [SETTINGS, SORTING])
def test_a_partition_column_gives_the_range_too(kind: str, limits: WriterSettings) -> None:
    values: list[int | None] = [None, *range(-3, 20)]
    batches = [rows(values * 3, kind, p=["x"] * 72), rows(values[::-1], kind, p=["y"] * 24)]
    files = encode_all(batches, plan(kind, ("p", "ts"), p="string"), limits)
    assert len(files) == 2 * len(values)
    assert all("ts" not in read(file).column_names for file in files)
    expected = [None if value is None else (value * UNIT_US[kind],) * 2 for value in values]
    for name in "xy":
        found = ranges([file for file in files if file.partition_values["p"] == name])
        assert sorted(found, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize("partition_by", [(), ("ts",)])
def test_a_mapped_column_is_found_by_its_name(partition_by: tuple[str, ...]) -> None:
    def mapped(name: str, data_type: str, physical_name: str, number: int) -> Field:
        metadata = {"delta.columnMapping.physicalName": physical_name, "delta.columnMapping.id": number}
        return Field(name, Primitive(data_type), True, metadata)

    # The other column has the name, physically.
    fields = [mapped("v", "long", "ts", 1), mapped("ts", "timestamp", "col-2", 2)]
    files = encode_all([rows([4, 4])], plan_of(fields, partition_by), SETTINGS)
    assert ranges(files) == [(4, 4)]


@pytest.mark.parametrize("batches", [[], [rows([1])]])
def test_a_column_that_will_not_do_is_refused_before_anything_is_written(batches: list[pa.RecordBatch]) -> None:
    store = RecordingStore()
    for name, message in (("time", "no such column; name ts"), ("v", "a column of type bigint")):
        wrong = WriterSettings(event_time_column=name)
        with pytest.raises(InvalidInput, match=message):
            write_attempt(batches, ATTEMPT, plan(), wrong, store, FakeClock())
    assert store.events == []


def files_of_an_attempt(batch: pa.RecordBatch, limits: WriterSettings) -> list[DataFile]:
    report = write_attempt([batch], ATTEMPT, plan(), limits, RecordingStore(), FakeClock())
    return [file for body in report.manifests for file in decode_manifest(body, "manifest").files]


def test_manifests_carry_the_range() -> None:
    files = files_of_an_attempt(rows([5, 1, None, None]), replace(SETTINGS, max_records_per_file=2))
    assert [(file.event_time_min_us, file.event_time_max_us) for file in files] == [(1, 5), (None, None)]


def test_manifests_carry_no_range_where_none_was_asked_for() -> None:
    (file,) = files_of_an_attempt(rows([5, 1]), WriterSettings())
    assert (file.event_time_min_us, file.event_time_max_us) == (None, None)


@settings(max_examples=60, deadline=None)
@given(
    data=st.lists(
        st.tuples(st.none() | st.integers(-(10**6), 10**6), st.sampled_from("abcde")), min_size=1, max_size=60
    ),
    batch_rows=st.integers(1, 30),
    open_partitions=st.integers(1, 4),
    max_records=st.integers(0, 9),
    row_group_rows=st.integers(1, 20),
)
def test_a_files_range_is_that_of_its_rows(
    data: list[tuple[int | None, str]], batch_rows: int, open_partitions: int, max_records: int, row_group_rows: int
) -> None:
    limits = replace(
        SORTING, open_partitions=open_partitions, max_records_per_file=max_records, row_group_rows=row_group_rows
    )
    batches = [
        rows([time for time, _ in data[at : at + batch_rows]], p=[p for _, p in data[at : at + batch_rows]])
        for at in range(0, len(data), batch_rows)
    ]
    for file in encode_all(batches, plan(partition_by=("p",), p="string"), limits):
        seen = read(file)["ts"].cast(pa.int64()).drop_null().to_pylist()
        assert file.event_times == (EventTimes(min(seen), max(seen)) if seen else None)
