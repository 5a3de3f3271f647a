"""`lakecommit files`: one location a line, JSON, and text to paste."""

from __future__ import annotations

import asyncio
import datetime as dt
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakecommit.cli.verbs.files.forms import FORMS
from lakecommit.schema import Primitive
from tests.lake import QUERY, Lake
from tests.lake.directory import Directory
from tests.unit.observing.test_files import VALUES, epoch, put_version


@pytest.fixture(params=["delta", "parquet"])
def lake(request, tmp_path):
    made = Lake.at(str(tmp_path / "ein Ort"))
    return made if request.param == "delta" else Directory(made.clock, made.store, made.flaky)


def fill(lake, values=("007", "a:b's", None)):
    asyncio.run(epoch(lake, lake.committer(), 0, list(values)))
    return {f"{lake.location}/{path}" for path in asyncio.run(lake.paths())}


def test_one_location_a_line(lake, invoke):
    expected = fill(lake)
    lines = invoke("files", lake.location).stdout.splitlines()
    assert (set(lines), len(lines)) == (expected, 3)


def test_long_locations_are_not_wrapped(tmp_path, invoke):
    lake = Lake.at(str(tmp_path / ("x" * 200) / ("y" * 200)))
    expected = fill(lake)
    assert set(invoke("files", lake.location).stdout.splitlines()) == expected


def test_json(lake, invoke_json):
    expected = fill(lake)
    found = invoke_json("files", lake.location)
    assert {each["location"] for each in found} == expected
    assert all(each["sizeBytes"] > 100 for each in found)


def test_a_table_without_files(lake, invoke, invoke_json):
    asyncio.run(lake.format().create(lake.schema, (), {}, str(QUERY)))
    assert invoke("files", lake.location).stdout == ""
    assert invoke_json("files", lake.location) == []
    assert "has no files yet" in invoke("files", lake.location, "--form", "duckdb", exit_code=1).stderr


def from_duckdb(text):
    return duckdb.sql(text).to_arrow_table()


def from_pyarrow(text):
    names: dict = {}
    exec(text, names)
    return names["dataset"].to_table()


def from_polars(text):
    names: dict = {}
    exec(text, names)
    return pa.table(names["frame"].collect())


PASTED = {"duckdb": from_duckdb, "pyarrow": from_pyarrow, "polars": from_polars}


@pytest.mark.parametrize("form", FORMS)
def test_text_to_paste_runs_and_gives_the_rows(lake, invoke, form):
    fill(lake, VALUES)
    rows = PASTED[form](invoke("files", lake.location, "--form", form).stdout)
    assert sorted((row["id"], row["text"]) for row in rows.to_pylist()) == list(enumerate(VALUES))


def test_text_for_duckdb_reads_columns_that_came_later(tmp_path):
    pq.write_table(pa.table({"id": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"id": [2], "more": ["x"]}), tmp_path / "2.parquet")
    found = from_duckdb(pasted("duckdb", tmp_path, ["1.parquet", "2.parquet"], []))
    assert sorted(map(str, found.to_pylist())) == ["{'id': 1, 'more': None}", "{'id': 2, 'more': 'x'}"]


# A type, how a path has a value of it, and the value.
TYPED = {
    "string": ("007", "007"),
    "byte": ("-5", -5),
    "short": ("12", 12),
    "integer": ("7", 7),
    "long": ("99999999999", 99999999999),
    "boolean": ("true", True),
    "date": ("2024-02-29", dt.date(2024, 2, 29)),
    "decimal(10, 2)": ("1.50", Decimal("1.50")),
    "double": ("1.50", "1.50"),
}


@pytest.mark.parametrize("form", FORMS)
def test_partition_values_have_their_types(tmp_path, form):
    columns = [(f"c{number}", Primitive(name)) for number, name in enumerate(TYPED)]
    nulls = dict.fromkeys((name for name, _ in columns), "__HIVE_DEFAULT_PARTITION__")
    texts = {name: text for (name, _), (text, _) in zip(columns, TYPED.values(), strict=True)}
    paths = ["/".join(f"{name}={text}" for name, text in each.items()) + "/x.parquet" for each in (texts, nulls)]
    for number, path in enumerate(paths):
        (tmp_path / path).parent.mkdir(parents=True)
        pq.write_table(pa.table({"id": [number]}), tmp_path / path)
    first, second = sorted(PASTED[form](pasted(form, tmp_path, paths, columns)).to_pylist(), key=lambda row: row["id"])
    expected = {name: value for (name, _), (_, value) in zip(columns, TYPED.values(), strict=True)}
    if form == "pyarrow":
        expected["c7"] = "1.50"
    assert (first, second) == ({"id": 0, **expected}, {"id": 1, **dict.fromkeys(expected)})


def pasted(form, directory, paths, columns):
    made = FORMS[form](str(directory), columns)
    return "\n".join([made.head, *(f"    {made.line(f'{directory}/{path}')}," for path in paths), made.tail])


def test_text_of_an_object_store():
    columns = [("day", Primitive("date")), ("n", Primitive("decimal(10, 2)"))]
    arrow = FORMS["pyarrow"]("s3a://lake/orders", columns)
    assert arrow.line("s3://lake/orders/day=1/x") == '"day=1/x"', "a list of paths below a file system"
    assert 'filesystem="s3://lake/orders"' in arrow.tail
    assert 'pa.schema([("day", pa.date32()), ("n", pa.string())])' in arrow.tail
    with pytest.raises(Exception, match="is not below s3://lake/orders"):
        arrow.line("s3://other/x")
    assert FORMS["duckdb"]("s3a://lake/orders", columns).line("s3://lake/orders/day=1/it's") == (
        "'s3://lake/orders/day=1/it''s'"
    )


def test_nothing_is_shown_of_a_table_whose_files_are_not_its_rows(tmp_path, invoke):
    lake = Lake.at(str(tmp_path / "delta"))
    fill(lake)
    ((_, metadata),) = [(n, a["metaData"]) for n, a in asyncio.run(lake.actions()) if "metaData" in a]
    features = {"readerFeatures": ["columnMapping"], "writerFeatures": ["columnMapping"]}
    mapped = {**metadata, "configuration": {"delta.columnMapping.mode": "name"}}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    put_version(lake, 2, {"protocol": protocol}, {"metaData": mapped})
    result = invoke("files", lake.location, exit_code=1)
    assert result.stdout == ""
    assert "it has column mapping" in result.stderr


def test_one_form_at_a_time(tmp_path, invoke):
    assert "give one of them" in invoke("files", tmp_path, "--form", "duckdb", "--json", exit_code=2).stdout


def test_there_is_no_table(tmp_path, invoke):
    assert "there is no table" in invoke("files", tmp_path, exit_code=1).stderr
