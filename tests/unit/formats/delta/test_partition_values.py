"""Partition values in the spellings of several writers."""

from __future__ import annotations

import pytest

from lakecommit.errors import InvalidInput
from lakecommit.formats.schema.partition_values import partition_values
from lakecommit.schema import Field, Primitive


def values(type_: str, *spelled: str | None) -> list:
    field = Field("c", Primitive(type_), True, {})
    return [partition_values((field,), {"c": each})[0] for each in spelled]


@pytest.mark.parametrize(
    ("type_", "spelled"),
    [
        ("string", ["", None]),
        ("integer", ["7", "07", "+7"]),
        ("boolean", ["true", "TRUE"]),
        ("double", ["1", "1.0", "1e0"]),
        ("double", ["NaN", "nan"]),
        ("float", ["-0.0", "0"]),
        ("double", ["Infinity", "inf"]),
        ("decimal(10,2)", ["1.5", "1.50"]),
        ("date", ["2026-01-02", "2026-1-2", "+2026-01-02"]),
        ("timestamp", ["2026-01-02T03:04:05.000000Z", "2026-01-02 03:04:05Z", "2026-01-02T03:04:05.000Z"]),
        ("timestamp_ntz", ["2026-01-02 03:04:05", "2026-01-02 03:04:05.000000", "2026-01-02T03:04:05.0"]),
        ("timestamp_ntz", ["2026-01-02", "2026-01-02 00:00"]),
    ],
)
def test_one_value(type_, spelled):
    assert len(set(values(type_, *spelled))) == 1


@pytest.mark.parametrize(
    ("type_", "spelled"),
    [
        ("string", ["a", "A", "a ", None]),
        ("integer", ["7", "-7", None]),
        ("boolean", ["true", "false", None]),
        ("double", ["NaN", "Infinity", "-Infinity", "0", None]),
        ("decimal(10,2)", ["1.5", "1.51", "15"]),
        ("decimal(38,0)", ["1234567890" * 3 + "1", "1234567890" * 3 + "2", "-" + "1234567890" * 3 + "1"]),
        ("date", ["2026-01-02", "2026-02-01", "-2026-01-02", "+12026-01-02", "0000-01-02"]),
        ("timestamp", ["2026-01-02T03:04:05.000001Z", "2026-01-02T03:04:05.1Z", "2026-01-02T03:04:05Z"]),
    ],
)
def test_different_values(type_, spelled):
    assert len(set(values(type_, *spelled))) == len(spelled)


def test_days_are_counted_from_1970_through_leap_years():
    assert values("date", "1970-01-01", "1970-01-02", "1969-12-31", "2000-03-01", "-0001-01-01") == [
        *(0, 1, -1),
        *(11017, -719893),
    ]


@pytest.mark.parametrize(
    ("type_", "spelled", "why"),
    [
        ("timestamp", "2026-01-02 03:04:05", "it does not say its time zone"),
        ("integer", "x", "it is no integer"),
        ("boolean", "yes", "it is no boolean"),
        ("decimal(3,1)", "ten", r"it is no decimal\(3,1\)"),
        ("date", "2026-13-01", "it is no date"),
    ],
)
def test_what_cannot_be_compared_is_said(type_, spelled, why):
    with pytest.raises(InvalidInput, match=f"c='{spelled}', since {why}; replace the whole table"):
        values(type_, spelled)
