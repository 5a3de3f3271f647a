"""Filters of deltalake, which skips files and row groups by the same statistics, find what it finds in a full scan."""

from __future__ import annotations

import json
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from lakecommit.writing.settings import WriterSettings
from tests.interop.appending import write_encoded

NAN, INF = float("nan"), float("inf")
NUMBERS = [1.0, 2.0, NAN, 3.0, 0.0, 0.0, -0.0, -0.0, INF, 5.0, -INF, None, NAN, NAN, 7.0, 8.0]
LONG = "b" * 5000
TEXTS = ["a", "b", LONG, LONG + "c", None, None, "", "é" * 40, "z", "😀" * 33, "c", LONG, "d", None, "b", "x"]
SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": name, "type": data_type, "nullable": True, "metadata": {}}
            for name, data_type in [("row", "long"), ("d", "double"), ("t", "string")]
        ],
    }
)
CONDITIONS = [
    *(f"d {operator} {value}" for operator in ("=", "<>", "<", ">=", ">") for value in ("0.0", "2.0", "'NaN'::double")),
    *(f"d {operator} '{value}'::double" for operator in ("=", "<", ">=") for value in ("inf", "-inf")),
    "not (d < 3)",
    "isnan(d)",
    "d is null",
    *(f"t {operator} '{value}'" for operator in ("=", "<", ">") for value in ("", "b", LONG, "z")),
    "starts_with(t, 'bbb')",
    "t is not null",
]


def table_of(path: Path, numbers: list[float | None], rows_a_file: int) -> deltalake.DeltaTable:
    rows = pa.table({"row": range(len(numbers)), "d": numbers, "t": TEXTS})
    write_encoded(path, SCHEMA, rows, WriterSettings(row_group_rows=2, max_records_per_file=rows_a_file))
    return deltalake.DeltaTable(str(path))


def ask(table: deltalake.DeltaTable, query: str) -> list[dict[str, object]]:
    answer = deltalake.QueryBuilder().register("rows", table).execute(query)
    return list(pa.table(answer.read_all()).to_pylist())


@pytest.mark.parametrize("rows_a_file", [2, 4, 16])
def test_its_queries(tmp_path: Path, rows_a_file: int) -> None:
    table = table_of(tmp_path, NUMBERS, rows_a_file)
    for condition in CONDITIONS:
        found = {each["row"] for each in ask(table, f"select row from rows where {condition}")}
        full = ask(table, f"select row, {condition} as found from rows")
        assert found == {each["row"] for each in full if each["found"]}, condition


@pytest.mark.parametrize("rows_a_file", [2, 4, 16])
def test_its_datasets(tmp_path: Path, rows_a_file: int) -> None:
    """Without NaN: they lose rows of files with NaN, or without a bound that other files have, whoever wrote those."""
    table = table_of(
        tmp_path, [4.0 if number is NAN else number for number in NUMBERS], rows_a_file
    ).to_pyarrow_dataset()
    number, text = ds.field("d"), ds.field("t")
    numbers = [
        number == 0.0,
        number >= 5.0,
        number == INF,
        number <= -INF,
        number != 1.0,
        ~(number < 3),
        number.is_null(),
    ]
    texts = [text == LONG, text == "b", text > "c", text != "b", text.is_null()]
    for condition in [*numbers, *texts]:
        expected = table.to_table().filter(condition)["row"].to_pylist()
        assert sorted(table.to_table(filter=condition)["row"].to_pylist()) == sorted(expected), str(condition)
