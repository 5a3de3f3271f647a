"""Whatever Spark skips by statistics, a filter finds the rows that it finds in a full scan of delta-spark's own table.

Random rows of every type go into small files with small row groups and pages, and random filters are asked of them.
"""

from __future__ import annotations

import random
from functools import partial, reduce
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from lakecommit.writing import parquet_file
from lakecommit.writing.settings import WriterSettings
from tests.interop.appending import write_encoded
from tests.interop.random_filters import conditions
from tests.interop.random_rows import PATHS, SCHEMA, RandomRows

ROWS = 48

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    small = partial(pq.ParquetWriter, max_rows_per_page=2, write_batch_size=1)
    monkeypatch.setattr(parquet_file.pq, "ParquetWriter", small)


@pytest.fixture(autouse=True)
def far_away(spark: SparkSession):
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield
    spark.conf.unset("spark.sql.session.timeZone")


def expected(frame: DataFrame, asked: list[str]) -> set[tuple[str, int]]:
    """A full scan: nothing is filtered, so that nothing can be skipped."""
    rows = frame.selectExpr("row", *(f"{condition} as c{n}" for n, condition in enumerate(asked))).collect()
    return {(condition, each.row) for each in rows for n, condition in enumerate(asked) if each[f"c{n}"]}


@pytest.mark.both_writers
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 20))])
def test_filters_find_the_same_rows(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    rows = RandomRows(rng, ROWS)
    limits = WriterSettings(row_group_rows=rng.choice([2, 4, 6]), max_records_per_file=rng.choice([6, 12, 24]))
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    write_encoded(ours, from_arrow_schema(SCHEMA, prefer_timestamp_ntz=True).json(), rows.table, limits)
    table = spark.read.format("delta").load(str(ours))
    table.coalesce(1).write.format("delta").save(str(theirs))
    asked = conditions(rng, rows, len(PATHS) if seed == 0 else 2 * len(PATHS))
    wanted = expected(spark.read.format("delta").load(str(theirs)), asked)
    assert len(wanted) > len(asked)
    files = spark.read.schema(table.schema).parquet(*map(str, ours.glob("*.parquet")))
    assert lost_and_added(files, asked, wanted) == ([], [])
    assert lost_and_added(table, asked, wanted) == ([], [])


def lost_and_added(frame: DataFrame, asked: list[str], wanted: set[tuple[str, int]]) -> tuple[list[Any], list[Any]]:
    """One job, in which each filter has a scan of its own and skips what it can."""
    scans = [frame.where(condition).selectExpr(f"{n} as n", "row") for n, condition in enumerate(asked)]
    found = {(asked[each.n], each.row) for each in reduce(DataFrame.union, scans).collect()}
    wanted = {(condition, row) for condition, row in wanted if condition in asked}
    return sorted(wanted - found), sorted(found - wanted)
