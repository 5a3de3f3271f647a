"""Defaults that are one value, and predicates on partitions."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakecommit.expressions.bound import Session
from lakecommit.expressions.constants import literal_value
from lakecommit.expressions.errors import Unsupported
from lakecommit.expressions.partition_predicates import matches, partition_predicate
from lakecommit.schema import Field, Primitive

SESSION = Session(zone="+02:00")
PARTITIONS = (Field("Day", Primitive("date"), True), Field("n", Primitive("integer"), True))


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("'x'", "string", "x"),
        ("5", "long", 5),
        ("- 5", "byte", -5),
        ("-(5)", "integer", -5),
        ("1", "decimal(10,2)", Decimal("1.00")),
        ("1.005", "decimal(3,2)", Decimal("1.01")),
        ("CAST(1 AS DOUBLE)", "double", 1.0),
        ("NULL", "date", None),
        ("true", "boolean", True),
        ("CAST('2020-02-29' AS DATE)", "date", dt.date(2020, 2, 29)),
        ("TIMESTAMP '2020-01-01 00:00:00'", "timestamp", dt.datetime(2019, 12, 31, 22, tzinfo=dt.timezone.utc)),
    ],
)
def test_literal_values(text: str, kind: str, value: Any) -> None:
    assert literal_value(text, Primitive(kind), SESSION).as_py() == value


@pytest.mark.parametrize(
    ("text", "kind", "why"),
    [
        ("current_timestamp()", "timestamp", "'current_timestamp', which makes it no literal"),
        ("current_date", "date", "current_date, which is not among the columns"),
        ("1 + 1", "integer", r"'\+', which makes it no literal"),
        ("'1'", "integer", "a cast of string to int"),
        ("1000", "byte", "the value 1000: a value does not fit into tinyint"),
        ("uuid()", "string", "uuid"),
    ],
)
def test_other_defaults_are_refused(text: str, kind: str, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        literal_value(text, Primitive(kind), SESSION)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("day = '2020-01-01'", [True, False, False]),
        ("DAY >= DATE '2020-01-01' AND n IN (1, 2)", [True, False, False]),
        ("day BETWEEN '2019-12-31' AND '2020-01-02' OR day IS NULL", [True, True, True]),
        ("NOT n = 1", [False, True, False]),
        ("n <=> NULL", [False, False, True]),
        ("NULL", [False, False, False]),
        ("n > -1", [True, True, False]),
    ],
)
def test_partitions_that_match(text: str, expected: list[bool]) -> None:
    predicate = partition_predicate(text, PARTITIONS, SESSION)
    days = [dt.date(2020, 1, 1), dt.date(2020, 1, 2), None]
    found = [
        matches(predicate, PARTITIONS, (pa.scalar(day, pa.date32()), pa.scalar(n, pa.int32())), None)
        for day, n in zip(days, [1, 3, None], strict=True)
    ]
    assert found == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("year(day) = 2020", "'year' in a predicate on partitions"),
        ("n + 1 = 2", r"'\+' in a predicate on partitions"),
        ("cast(n as long) = 2", "a cast of a column in a predicate on partitions"),
        ("value = 1", "value, which is not among the columns"),
        ("n", "int as a condition"),
        ("n like '1'", "'like' in a predicate on partitions"),
    ],
)
def test_other_predicates_are_refused(text: str, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        partition_predicate(text, PARTITIONS, SESSION)
