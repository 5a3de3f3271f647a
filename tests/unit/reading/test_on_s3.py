"""Files on an object store: only the bytes that are needed, ahead of need, and what is gone."""

from __future__ import annotations

import io
import json
import threading
import zlib
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakecommit.errors import CorruptState, VersionsGone
from lakecommit.formats.reading import MATCHED_BY, ReadFile, ReadPlan
from lakecommit.reading import opening
from lakecommit.reading.opening import Place
from lakecommit.reading.planning.splits import splits_of
from lakecommit.reading.rows import RowRead, read_rows
from lakecommit.storage.location import open_store

from ..formats.delta.fakes import run
from .files import read, rows, schema_of
from .test_rows import bitmap

TABLE = schema_of(x="long", s="string")


@pytest.fixture
def location(request):
    return f"memory://{request.node.name.replace('[', '-').replace(']', '')}/table"


def put(location, name, count=5000, **options) -> ReadFile:
    body = io.BytesIO()
    table = pa.table(
        {"x": range(count), "noise": [f"noise {n}" for n in range(count)], "s": [str(n) for n in range(count)]}
    )
    pq.write_table(table, body, row_group_size=500, use_dictionary=False, compression="none", **options)
    run(open_store(location, {}).put(name, body.getvalue()))
    return ReadFile(name, len(body.getvalue()), 1)


@pytest.mark.parametrize("whole", [0, 2**30])
def test_rows_of_many_files_come_in_order(location, monkeypatch, whole):
    monkeypatch.setattr(opening, "WHOLE_BYTES", whole)
    files = [put(location, f"{number}.parquet", 1000 * number) for number in range(1, 8)]
    found = [row["x"] for row in rows(location, files, TABLE)]
    assert found == [number for file in range(1, 8) for number in range(1000 * file)]
    assert len(rows(location, files[-1], TABLE, where="x >= 6999", split=9000)) == 1


def test_only_chunks_that_are_wanted_are_fetched(location, monkeypatch):
    monkeypatch.setattr(opening, "WHOLE_BYTES", 0)
    file = put(location, "a.parquet", 200_000)
    fetched = []
    exactly = opening.exactly

    async def counted(store, path, start, length):
        fetched.append(length)
        return await exactly(store, path, start, length)

    monkeypatch.setattr(opening, "exactly", counted)
    monkeypatch.setattr("lakecommit.formats.ranged.MERGE_GAP_BYTES", 0)
    assert len(rows(location, file, TABLE, wanted=schema_of(x="long"), where="x < 1000")) == 1000
    assert sum(fetched) < file.size_bytes / 10


def test_deleted_rows(location):
    file = put(location, "a.parquet")
    body = bitmap(1, 2, 4999)
    whole = b"\x01" + len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    run(open_store(location, {}).put("dv.bin", whole))
    file = replace(file, vector=json.dumps({"rows": 3, "path": "dv.bin", "at": 1, "size": len(body)}))
    assert [row["x"] for row in rows(location, file, TABLE)] == [0, *range(3, 4999)]


@pytest.mark.parametrize("whole", [0, 2**30])
def test_a_file_that_is_gone(location, monkeypatch, whole):
    monkeypatch.setattr(opening, "WHOLE_BYTES", whole)
    file = put(location, "a.parquet")
    run(open_store(location, {}).delete(["a.parquet"]))
    with pytest.raises(VersionsGone, match=r"a\.parquet of memory.* is gone"):
        rows(location, file, TABLE)
    vector = json.dumps({"rows": 3, "path": "dv.bin", "at": 1, "size": 9})
    with pytest.raises(VersionsGone, match=r"dv\.bin of memory.* is gone"):
        rows(location, replace(put(location, "b.parquet"), vector=vector), TABLE)


def test_a_file_of_another_length_is_damage(location):
    file = put(location, "a.parquet")
    with pytest.raises(CorruptState, match=r"a\.parquet"):
        rows(location, replace(file, size_bytes=file.size_bytes + 9), TABLE)


def test_who_stops_early_leaves_nothing_running(location):
    files = [put(location, f"{number}.parquet") for number in range(6)]
    plan = ReadPlan("t", 1, TABLE, (), {MATCHED_BY: "name"})
    batches = read_rows(RowRead(Place(location, {}), plan, TABLE), [s for f in files for s in splits_of(f, 2**40)])
    next(batches)
    batches.close()
    assert not [each for each in threading.enumerate() if each.name == "lakecommit-reading"]
    assert read(location, files[0], TABLE)
