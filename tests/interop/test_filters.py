"""Whatever Spark skips by statistics, a filter finds the rows that it finds in a full scan of delta-spark's own table.

Random rows of every type go into small files with small row groups and pages, and random filters are asked of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from pyspark.sql import DataFrame, SparkSession

from lakecommit.schema import to_json
from lakecommit.writing import parquet_file
from lakecommit.writing.settings import WriterSettings
from tests.interop.appending import write_encoded
from tests.interop.examples import examples
from tests.interop.random_filters import conditions
from tests.interop.random_rows import SCHEMA, RandomRows, rows_of
from tests.interop.random_values import pick

CONDITIONS = 23

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Drawn:
    rows: RandomRows
    limits: dict[str, int]
    asked: list[str]


@st.composite
def questions(draw: DrawFn) -> Drawn:
    limits = {"row_group_rows": pick(draw, [2, 4, 6]), "max_records_per_file": pick(draw, [6, 12, 24])}
    rows = draw(rows_of(SCHEMA, stretches=8))
    # With the simplest table, which has none, every run begins.
    assume(rows.rows)
    return Drawn(rows, limits, [f"row >= {len(rows.rows) // 2}", *conditions(draw, rows, CONDITIONS)])


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
@examples(seeds=[0], count=1, rounds=4, drawn=questions())
def test_filters_find_the_same_rows(spark: SparkSession, tmp_path_factory: Any, drawn: Drawn) -> None:
    folder = tmp_path_factory.mktemp("tables")
    ours, theirs = folder / "ours", folder / "theirs"
    write_encoded(ours, to_json(SCHEMA), drawn.rows.arrow, WriterSettings(**drawn.limits))
    table = spark.read.format("delta").load(str(ours))
    table.coalesce(1).write.format("delta").save(str(theirs))
    wanted = expected(spark.read.format("delta").load(str(theirs)), drawn.asked)
    numbers = [row["row"] for row in drawn.rows.rows]
    assert {row for condition, row in wanted if condition == drawn.asked[0]} == {*numbers[len(numbers) // 2 :]}
    files = spark.read.schema(table.schema).parquet(*map(str, ours.glob("*.parquet")))
    assert lost_and_added(files, drawn.asked, wanted) == ([], [])
    assert lost_and_added(table, drawn.asked, wanted) == ([], [])


def lost_and_added(frame: DataFrame, asked: list[str], wanted: set[tuple[str, int]]) -> tuple[list[Any], list[Any]]:
    """One job, in which each filter has a scan of its own and skips what it can."""
    scans = [frame.where(condition).selectExpr(f"{n} as n", "row") for n, condition in enumerate(asked)]
    found = {(asked[each.n], each.row) for each in reduce(DataFrame.union, scans).collect()}
    return sorted(wanted - found), sorted(found - wanted)
