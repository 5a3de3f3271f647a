"""What a plan asks of rows: columns that are filled in, checks that hold, and no file with a row that violates one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lakecommit.errors import ConstraintViolated, UnsupportedTable
from lakecommit.expressions.bound import Session
from lakecommit.formats.plan import Check, Computed, WritePlan
from lakecommit.schema import Primitive, Struct
from lakecommit.writing.settings import WriterSettings
from tests.unit.writing.tools import column, encode_all, plan_of, read

ID = column("id", "long", **{"delta.columnMapping.physicalName": "col-1"})
AT = column("at", "timestamp")
DAY = column("Day", "date", nullable=False)
INNER = column("s", Struct((column("x", "integer"),)))


def plan(*checks: str, computed: dict[str, str] | None = None, defaults: dict[str, str] | None = None) -> WritePlan:
    return replace(
        plan_of([ID, AT, INNER, column("text", "string"), DAY], ["Day"], ["col-1"]),
        checks=tuple(Check(f"c{number}", each) for number, each in enumerate(checks)),
        computed=tuple(Computed(name, text) for name, text in (computed or {}).items()),
        defaults=tuple(Computed(name, text) for name, text in (defaults or {}).items()),
    )


def rows(zone: str = "America/New_York", **more: list[Any]) -> pa.RecordBatch:
    columns = {"id": pa.array([1, 2]), "at": pa.array([0, 10**15], pa.timestamp("us", tz=zone))}
    return pa.RecordBatch.from_pydict({**columns, **{name: pa.array(values) for name, values in more.items()}})


GENERATED = {"Day": "CAST(at AS DATE)"}


def test_missing_columns_are_filled_in() -> None:
    filled = plan(computed=GENERATED, defaults={"text": "'it''s'"})
    files = encode_all([rows()], filled)
    # The zone is the one that Spark hands timestamps over with.
    assert [file.partition_values for file in files] == [{"Day": "1969-12-31"}, {"Day": "2001-09-08"}]
    assert [value for file in files for value in read(file)["text"].to_pylist()] == ["it's", "it's"]
    east = WriterSettings(session=Session(zone="+14:00"))
    assert [file.partition_values["Day"] for file in encode_all([rows()], filled, east)] == ["1970-01-01", "2001-09-09"]


def test_what_is_computed_may_use_what_is_filled_in_or_missing() -> None:
    batch = rows().select(["at"])
    made = plan(computed={**GENERATED, "text": "CAST(id + 1 AS STRING)"}, defaults={"id": "41"})
    assert [read(file)["text"].to_pylist() for file in encode_all([batch], made)] == [["42"], ["42"]]
    made = plan(computed={**GENERATED, "text": "CAST(id AS STRING)"})
    assert [read(file)["text"].to_pylist() for file in encode_all([batch], made)] == [[None], [None]]
    constant = plan(computed={**GENERATED, "text": "'x'"})
    assert [read(file)["text"].to_pylist() for file in encode_all([batch], constant)] == [["x"], ["x"]]


def test_rows_that_keep_to_the_checks_are_written() -> None:
    checked = plan("ID > 0 and s . x <> 3", "day <=> (CAST(at AS DATE))", computed=GENERATED)
    assert sum(file.rows for file in encode_all([rows(s=[{"x": 1}, {"x": 2}])], checked)) == 2


@pytest.mark.parametrize(
    ("more", "values"),
    [
        ({"s": [{"x": 1}, {"x": 3}]}, "id : 2; s.x : 3;"),
        # Null is not true, as with Delta's own writers.
        ({"s": [{"x": 1}, None]}, "id : 2; s.x : null;"),
        ({}, "id : 1; s.x : null;"),
    ],
)
def test_the_first_row_that_violates_a_check_is_shown(more: dict[str, Any], values: str) -> None:
    checked = plan("id > 0 and s . x <> 3", computed=GENERATED)
    with pytest.raises(ConstraintViolated) as caught:
        encode_all([rows(**more)], checked)
    assert f"CHECK constraint c0 (id > 0 and s . x <> 3) violated by row with values: {values}" in str(caught.value)


def test_a_check_that_has_no_value_is_violated() -> None:
    divided = plan("10 / (id - 1) > 0", computed=GENERATED)
    with pytest.raises(ConstraintViolated, match=r"c0 .* has no value for a row: division by zero"):
        encode_all([rows()], divided)
    lenient = WriterSettings(session=Session(ansi=False))
    with pytest.raises(ConstraintViolated, match="violated by row with values: id : 1;"):
        encode_all([rows()], divided, lenient)


def test_a_long_value_is_cut() -> None:
    with pytest.raises(ConstraintViolated, match=r"text : x{200}…; nothing was added"):
        encode_all([rows(text=["x" * 1000, ""])], plan("length(text) < 10", computed=GENERATED))


def test_a_zone_that_nobody_says_is_refused() -> None:
    days = plan_of([column("d", "date"), column("t", "timestamp")])
    batch = pa.RecordBatch.from_pydict({"d": pa.array([1], pa.date32())})
    asked = replace(days, checks=(Check("c", "d > TIMESTAMP '2020-01-01 00:00:00'"),))
    with pytest.raises(UnsupportedTable, match=r"time zone, which is not known; set spark\.sql\.session"):
        encode_all([batch], asked)


def test_rules_that_the_session_does_not_allow_are_refused_before_any_row() -> None:
    sensitive = WriterSettings(session=Session(case_sensitive=True))
    with pytest.raises(UnsupportedTable, match=r"the constraint c0 \(ID > 0\) .*settings of this session.*ID"):
        encode_all([], plan("ID > 0"), sensitive)


def test_the_types_of_columns_do_not_matter_on_the_way() -> None:
    batch = pa.RecordBatch.from_pydict({"c": pa.array(["a", "b"]).dictionary_encode()})
    checked = replace(plan_of([column("c", Primitive("string"))]), checks=(Check("c", "c IN ('a', 'b')"),))
    assert encode_all([batch], checked)[0].rows == 2
