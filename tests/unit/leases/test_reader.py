"""`lakecommit.lease` for readers of others: what they open, what is kept, and what they are told."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, write_deltalake

import lakecommit
from lakecommit.errors import InvalidInput, LeaseLost
from lakecommit.leases import taking
from lakecommit.state.lease_layout import CUTS, LEASES, CutName, parse_lease


@pytest.fixture(autouse=True)
def looks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No vacuum that these tests know withdraws its cut."""
    monkeypatch.setattr(taking, "LOOKING_MS", 0)


@pytest.fixture
def table(tmp_path: Path) -> str:
    place = str(tmp_path / "table")
    write_deltalake(place, pa.table({"id": [1, 2]}))
    write_deltalake(place, pa.table({"id": [3]}), mode="append")
    return place


def leases(table: str) -> list[Any]:
    folder = Path(table, LEASES)
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    return [parse_lease(f"{LEASES}/{name}") for name in names]


def ids(rows: Any) -> list[int]:
    return sorted(rows.column("id").to_pylist())


def cut(table: str, version: int) -> None:
    """A vacuum that saw no lease."""
    path = Path(table, CutName(version, uuid.uuid4().hex).path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"holder": "a vacuum"}')


def test_the_newest_version_is_kept_and_read_by_deltalake_and_pyarrow(table: str) -> None:
    with lakecommit.lease(table, ttl="1m") as lease:
        write_deltalake(table, pa.table({"id": [9]}), mode="overwrite")
        (held,) = leases(table)
        assert (held.version, held.ttl_s, held.lease) == (1, 60, lease.id)
        assert lease.version == 1
        opened = DeltaTable(lease.location, version=lease.version, storage_options=lease.storage_options)
        assert ids(opened.to_pyarrow_table()) == [1, 2, 3]
        assert ids(ds.dataset(lease.files(), format="parquet").to_table()) == [1, 2, 3]
        lease.check()
    assert leases(table) == []


def test_a_version_may_be_asked_for(table: str) -> None:
    with lakecommit.lease(table, version=0) as lease:
        assert ids(ds.dataset(lease.files(), format="parquet").to_table()) == [1, 2]


def test_in_a_notebook_whose_loop_runs(table: str) -> None:
    async def cell() -> int:
        with lakecommit.lease(table) as lease:
            return len(lease.files())

    assert asyncio.run(cell()) == 2


def test_what_was_cut_is_told_at_the_end(table: str) -> None:
    with pytest.raises(LeaseLost, match="a vacuum"), lakecommit.lease(table) as lease:
        write_deltalake(table, pa.table({"id": [9]}), mode="overwrite")
        cut(table, 2)
        lease.check()
    assert leases(table) == []


def test_it_is_told_in_the_place_of_a_file_that_is_not_there(table: str) -> None:
    with pytest.raises(LeaseLost) as caught, lakecommit.lease(table) as lease:
        write_deltalake(table, pa.table({"id": [9]}), mode="overwrite")
        cut(table, 2)
        os.unlink(lease.files()[0])
        ds.dataset(DeltaTable(table, version=1).file_uris(), format="parquet").to_table()
    assert isinstance(caught.value.__context__, OSError)


def test_a_cut_that_took_nothing_of_it_is_no_loss(table: str) -> None:
    with lakecommit.lease(table, version=0):
        cut(table, 1)


def test_an_old_version_of_which_files_are_gone_is_refused(table: str) -> None:
    write_deltalake(table, pa.table({"id": [9]}), mode="overwrite")
    cut(table, 2)
    with pytest.raises(LeaseLost, match="version 2 removed"), lakecommit.lease(table, version=1):
        pass
    assert not any(thread.name == "lakecommit-lease" and not thread.daemon for thread in threading.enumerate())


@pytest.mark.parametrize("ttl", ["30s", "31d", "0", "never", ""])
def test_a_ttl_out_of_bounds_is_refused(table: str, ttl: str) -> None:
    with pytest.raises(InvalidInput, match="1m to 30d"):
        lakecommit.lease(table, ttl=ttl)


def test_there_must_be_a_table(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no table"), lakecommit.lease(str(tmp_path / "nothing")):
        pass
    assert not (tmp_path / "nothing").exists()


def test_a_version_that_is_not_there_is_refused(table: str) -> None:
    with pytest.raises(InvalidInput, match="7"), lakecommit.lease(table, version=7):
        pass
    assert leases(table) == []


def test_before_the_block_there_is_no_version(table: str) -> None:
    with pytest.raises(InvalidInput, match="with block"):
        _ = lakecommit.lease(table).version
    assert not Path(table, CUTS).exists()


def test_a_check_says_nothing_good_of_a_lease_that_is_not_held(table: str) -> None:
    lease = lakecommit.lease(table)
    with pytest.raises(InvalidInput, match="not taken yet"):
        lease.check()
    with lease:
        lease.check()
    with pytest.raises(InvalidInput, match="was released"):
        lease.check()


DOCS = Path(__file__).parents[3] / "docs" / "leases.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=["deltalake", "pyarrow", "duckdb", "polars", "notebook"])
def test_the_examples_of_the_docs(example: str, table: str, capsys: pytest.CaptureFixture[str]) -> None:
    found: dict[str, Any] = {"location": table}
    exec(compile(example, str(DOCS), "exec"), found)
    assert leases(table) == []
    if "rows" in found:
        rows = found["rows"]
        # DuckDB gives tuples, the others tables.
        assert (sorted(row[0] for row in rows) if isinstance(rows, list) else ids(pa.table(rows))) == [1, 2, 3]
    else:
        assert capsys.readouterr().out == "1 2\n"
