"""Whatever expression is evaluated here has the type and the values that it has in Spark, and fails where Spark does.

Random rows of every type are asked random expressions, all in one query; those that fail are asked one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakecommit import schema as schemas
from lakecommit.expressions.binding import bind
from lakecommit.expressions.bound import Bound, Rows, Session
from lakecommit.expressions.errors import EvaluationFailed, Unsupported
from lakecommit.expressions.parser import parse
from lakecommit.expressions.syntax import sql
from lakecommit.schema import describe
from tests.interop.examples import examples
from tests.interop.random_expressions import expressions
from tests.interop.random_rows import SCHEMA, RandomRows, rows_of
from tests.interop.random_values import pick

EXPRESSIONS = 75
# How many of those that fail are asked of Spark, each of which is a query.
FAILING = 4
ZONES = ["America/New_York", "UTC", "Asia/Kolkata", "+02:00", "Pacific/Apia", "Europe/London", "America/Sao_Paulo"]
KINDS = ["boolean", "boolean", "boolean", "number", "number", "number", "string", "date", "timestamp", "timestamp_ntz"]

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Drawn:
    rows: RandomRows
    session: Session
    texts: list[str]


@st.composite
def questions(draw: DrawFn) -> Drawn:
    session = Session(ansi=pick(draw, [True, True, False]), zone=pick(draw, ZONES))
    rows = draw(rows_of(SCHEMA, stretches=3))
    # With the simplest table, which has none, every run begins.
    assume(rows.rows)
    return Drawn(rows, session, draw(expressions(KINDS, EXPRESSIONS)))


@pytest.fixture(autouse=True)
def settings_of_their_own(spark: SparkSession):
    yield
    for name in ("spark.sql.session.timeZone", "spark.sql.ansi.enabled"):
        spark.conf.unset(name)


def evaluated(text: str, table: pa.Table, session: Session) -> tuple[Bound, pa.Array | None] | None:
    """None where it is refused, also for a letter that only Spark's Unicode may know; no values where it fails."""
    try:
        bound = bind(parse(text), SCHEMA, session)
    except Unsupported:
        return None
    columns = [column.combine_chunks() for column in table.columns]
    try:
        return bound, bound.evaluate(Rows(columns, table.num_rows, session.zone))
    except EvaluationFailed as error:
        return None if "Unicode" in str(error) else (bound, None)


def shown(values: pa.Array | pa.ChunkedArray) -> list[str]:
    """Zeros of either sign are told apart, and NaN is like itself."""
    if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        values = values.cast(pa.int32() if pa.types.is_date(values.type) else pa.int64())
    return [repr(value) for value in values.to_pylist()]


def differences(frame: DataFrame, found: dict[str, tuple[Bound, pa.Array]]) -> list[Any]:
    asked = frame.selectExpr(*(f"{text} AS c{number}" for number, text in enumerate(found)))
    answer = asked.toArrow()
    theirs = schemas.parse(asked.schema.json())
    wrong = []
    for number, (text, (bound, values)) in enumerate(found.items()):
        if describe(bound.type) != describe(theirs.fields[number].type):
            wrong.append((text, describe(bound.type), describe(theirs.fields[number].type)))
            continue
        pairs = zip(shown(values), shown(answer.column(number)), strict=True)
        rows = [(row, pair) for row, pair in enumerate(pairs) if pair[0] != pair[1]]
        if rows:
            wrong.append((text, rows[:3]))
    return wrong


def fails(frame: DataFrame, text: str) -> bool:
    try:
        frame.selectExpr(f"{text} AS c").toArrow()
    except PySparkException:
        return True
    return False


@examples(seeds=[0], count=4, rounds=14, drawn=questions())
def test_expressions_have_the_values_that_they_have_in_spark(
    spark: SparkSession, tmp_path_factory: Any, drawn: Drawn
) -> None:
    table, session = drawn.rows.arrow, drawn.session
    path = str(tmp_path_factory.mktemp("table") / "rows.parquet")
    pq.write_table(table, path)
    frame = spark.read.parquet(path)
    spark.conf.set("spark.sql.session.timeZone", session.zone)
    spark.conf.set("spark.sql.ansi.enabled", session.ansi)
    found = {text: each for text in drawn.texts if (each := evaluated(text, table, session)) is not None}
    assert differences(frame, {text: each for text, each in found.items() if each[1] is not None}) == []
    failing = [text for text, (_, values) in found.items() if values is None]
    assert [text for text in failing[:FAILING] if not fails(frame, text)] == []
    # Written as we would show them, they mean the same.
    again = {text: evaluated(sql(parse(text)), table, session) for text in found}
    assert [text for text, each in again.items() if each is None or shown_all(each) != shown_all(found[text])] == []


def shown_all(found: tuple[Bound, pa.Array | None]) -> Any:
    return found[0].type, None if found[1] is None else shown(found[1])
