"""How rows become files: rolling, row groups, many partition values, bounded memory, a full disk."""

from __future__ import annotations

import errno
import io
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lakecommit.errors import StoreError
from lakecommit.schema import Array, Map, Primitive, Struct
from lakecommit.writing import encode as encoding
from lakecommit.writing import spill
from lakecommit.writing.settings import WriterSettings
from tests.unit.writing.tools import column, encode_all, parquet_of, plan_of, read

PLAN = plan_of([column("p", "long"), column("v", "long"), column("t", "binary")], ["p"])
FLAT = plan_of([column("v", "long"), column("t", "binary")])


def noise(rows: int, width: int = 100, start: int = 0) -> pa.RecordBatch:
    """Rows that no compression makes smaller."""
    return pa.RecordBatch.from_pydict({"v": range(start, start + rows), "t": [os.urandom(width) for _ in range(rows)]})


def spread(rows: int, values: int, start: int = 0) -> pa.RecordBatch:
    numbers = range(start, start + rows)
    return pa.RecordBatch.from_pydict({"p": [n % values for n in numbers], "v": numbers, "t": [b"x" * 20] * rows})


def values_of(files: list[encoding.EncodedFile]) -> list[int]:
    return [value for file in files for value in read(file)["v"].to_pylist()]


def test_no_rows_no_files() -> None:
    assert encode_all([], PLAN) == []
    assert encode_all([spread(0, 1)], PLAN) == []
    assert encode_all([noise(0)], FLAT) == []


def test_small_batches_become_one_row_group() -> None:
    (file,) = encode_all([noise(10, start=10 * n) for n in range(50)], FLAT)
    assert parquet_of(file).num_row_groups == 1
    assert values_of([file]) == list(range(500))


def test_values_that_hardly_repeat_get_no_dictionary() -> None:
    plan = plan_of([column("unique", "long"), column("repeated", "long"), column("number", "double")])
    numbers = pa.array(range(300_000))
    again = pa.array([number % 50_000 for number in range(300_000)])
    rows = pa.RecordBatch.from_pydict({"unique": numbers, "repeated": again, "number": again.cast("double")})
    (file,) = encode_all([rows.slice(start, 10_000) for start in range(0, 300_000, 10_000)], plan)
    group = parquet_of(file).metadata.row_group(0)
    assert [group.column(number).has_dictionary_page for number in range(3)] == [False, True, False]
    assert read(file)["unique"].to_pylist() == numbers.to_pylist()
    assert read(file)["repeated"].to_pylist() == again.to_pylist()


def test_few_rows_get_a_dictionary_whatever_they_hold() -> None:
    (file,) = encode_all([noise(100)], FLAT)
    group = parquet_of(file).metadata.row_group(0)
    assert [group.column(number).has_dictionary_page for number in range(2)] == [True, True]


def test_files_roll_at_the_target_size() -> None:
    target = 200_000
    files = encode_all(
        [noise(500, start=500 * n) for n in range(20)], FLAT, WriterSettings(target_file_size_bytes=target)
    )
    assert values_of(files) == list(range(10_000))
    assert [file.path for file in files] == [f"{number}.parquet" for number in range(len(files))]
    assert all(0.85 * target <= file.size_bytes <= 1.15 * target for file in files[:-1])
    assert files[-1].size_bytes <= 1.15 * target


def test_a_batch_larger_than_a_file_is_cut() -> None:
    files = encode_all([noise(5_000)], FLAT, WriterSettings(target_file_size_bytes=100_000))
    assert len(files) >= 5
    assert values_of(files) == list(range(5_000))


@pytest.mark.parametrize(("limit", "sizes"), [(30, [30, 30, 30, 10]), (50, [50, 50]), (1000, [100]), (1, [1] * 100)])
def test_files_roll_at_exactly_the_record_limit(limit: int, sizes: list[int]) -> None:
    batches = [noise(25, start=25 * n) for n in range(4)]
    files = encode_all(batches, FLAT, WriterSettings(max_records_per_file=limit))
    assert [file.rows for file in files] == sizes
    assert values_of(files) == list(range(100))


def test_row_groups_end_at_rows_and_at_bytes() -> None:
    (file,) = encode_all([noise(100)], FLAT, WriterSettings(row_group_rows=40))
    assert [parquet_of(file).metadata.row_group(n).num_rows for n in range(3)] == [40, 40, 20]
    (file,) = encode_all([noise(1_000)], FLAT, WriterSettings(row_group_bytes=50_000))
    assert parquet_of(file).num_row_groups == 3


def test_a_row_larger_than_everything_gets_through() -> None:
    limits = WriterSettings(target_file_size_bytes=1000, row_group_bytes=1000, buffer_bytes=1000, spool_bytes=1000)
    files = encode_all([noise(3, width=50_000)], FLAT, limits)
    assert values_of(files) == [0, 1, 2]


TINY = WriterSettings(buffer_bytes=20_000, chunk_bytes=4_000, spill_bytes=8_000, spool_bytes=500)


def test_many_values_one_file_each_and_few_encoders(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: set[int] = set()
    most = 0

    class Counted(encoding.RowSink):
        def add(self, batch: pa.RecordBatch) -> Iterator[Any]:
            nonlocal most
            alive.add(id(self))
            most = max(most, len(alive))
            return super().add(batch)

        def finish(self) -> Iterator[Any]:
            alive.discard(id(self))
            return super().finish()

    monkeypatch.setattr(encoding, "RowSink", Counted)
    files = encode_all([spread(1_000, 300, start=1_000 * n) for n in range(9)], PLAN, TINY)
    assert most == TINY.open_partitions
    assert len(files) == 300
    assert {file.partition_values["p"] for file in files} == {str(value) for value in range(300)}
    assert sorted(values_of(files)) == list(range(9_000))
    for file in files:
        assert {value % 300 for value in read(file)["v"].to_pylist()} == {int(str(file.partition_values["p"]))}


def test_runs_are_merged_in_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "_FAN_IN", 3)
    open_runs: list[int] = []
    keep = spill.ExternalSort._keep

    def counted(self: spill.ExternalSort, blocks: Any, level: int) -> None:
        keep(self, blocks, level)
        open_runs.append(sum(map(len, self._levels)))

    monkeypatch.setattr(spill.ExternalSort, "_keep", counted)
    files = encode_all([spread(1_000, 40, start=1_000 * n) for n in range(40)], PLAN, TINY)
    assert len(open_runs) > 40
    assert max(open_runs) <= 2 * 5
    assert len(files) == 40
    assert sorted(values_of(files)) == list(range(40_000))


def test_what_waits_in_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 0

    class Watched(encoding._Encoder):
        def _rows_to(self, sink: encoding.RowSink, rows: pa.RecordBatch) -> Iterator[encoding.EncodedFile]:
            nonlocal most
            yield from super()._rows_to(sink, rows)
            most = max(most, sum(sink.buffered_bytes for sink in self._sinks.values()))

    monkeypatch.setattr(encoding, "_Encoder", Watched)
    limits = replace(TINY, row_group_bytes=1_000_000)
    files = encode_all([spread(500, 10, start=500 * n) for n in range(40)], PLAN, limits)
    assert 0 < most <= limits.buffer_bytes
    assert len(files) == 10
    assert sorted(values_of(files)) == list(range(20_000))


def test_overflowing_values_roll_too() -> None:
    limits = replace(TINY, open_partitions=1, max_records_per_file=7)
    files = encode_all([spread(100, 4)], PLAN, limits)
    assert sorted(file.rows for file in files) == [4] * 4 + [7] * 12
    assert sorted(values_of(files)) == list(range(100))


def test_large_files_go_to_the_local_directory_and_leave_nothing(tmp_path: Any) -> None:
    limits = WriterSettings(spool_bytes=1_000, local_dir=str(tmp_path))
    (file,) = encode_all([noise(1_000)], FLAT, limits)
    assert values_of([file]) == list(range(1_000))
    file.spool.release()
    assert list(tmp_path.iterdir()) == []


class _FullDisk:
    """A local file on a disk that takes a few bytes and no more."""

    def __init__(self, **_: object) -> None:
        self._left = 5_000
        self._file = io.BytesIO()

    def write(self, data: bytes) -> int:
        self._left -= len(data)
        if self._left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@pytest.mark.parametrize("case", ["spool", "spill"])
def test_a_full_disk_is_said(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", _FullDisk)
    with pytest.raises(StoreError, match=r"local directory .*: no space left on device; make room"):
        if case == "spool":
            encode_all([noise(1_000)], FLAT, WriterSettings(spool_bytes=1_000))
        else:
            batch = pa.RecordBatch.from_pydict(
                {"p": range(1000), "v": range(1000), "t": [os.urandom(50) for _ in range(1000)]}
            )
            encode_all([batch], PLAN, replace(TINY, spool_bytes=10**6))


def test_an_error_of_the_input_is_passed_on() -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield spread(1_000, 40)
        raise ConnectionResetError("the other side is gone")

    with pytest.raises(ConnectionResetError, match="the other side is gone"):
        encode_all(broken(), PLAN, TINY)


def test_all_but_floating_point_columns_have_dictionaries() -> None:
    inner = Struct((column("x", "float"), column("y", "string")))
    fields = [
        column("a.b", "long"),
        column("f", "double"),
        column("s", inner),
        column("l", Array(inner, True)),
        column("m", Map(Primitive("string"), Primitive("double"), True)),
    ]
    nested = {"x": 1.0, "y": "q"}
    batch = pa.RecordBatch.from_pylist(
        [{"a.b": 1, "f": 1.0, "s": nested, "l": [nested], "m": {"k": 1.0}}] * 5,
        pa.schema(
            [
                ("a.b", pa.int64()),
                ("f", pa.float64()),
                ("s", pa.struct([("x", pa.float32()), ("y", pa.string())])),
                ("l", pa.list_(pa.struct([("x", pa.float32()), ("y", pa.string())]))),
                ("m", pa.map_(pa.string(), pa.float64())),
            ]
        ),
    )
    (file,) = encode_all([batch], plan_of(fields, stats_columns=[]))
    group = parquet_of(file).metadata.row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    with_dictionary = {chunk.path_in_schema for chunk in chunks if chunk.has_dictionary_page}
    assert with_dictionary == {"a.b", "s.y", "l.list.element.y", "m.key_value.key"}
