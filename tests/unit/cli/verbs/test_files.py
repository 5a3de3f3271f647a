"""`lakecommit files`: one location a line, JSON, and text to paste."""

from __future__ import annotations

import asyncio
import json

import pyarrow.dataset
import pytest

from lakecommit.cli.verbs.files.forms import FORMS
from lakecommit.schema import Primitive
from tests.lake import QUERY, Lake
from tests.lake.directory import Directory
from tests.unit.observing.test_files import epoch, put_version


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


def test_text_for_pyarrow_runs(lake, invoke):
    fill(lake)
    names: dict = {}
    exec(invoke("files", lake.location, "--form", "pyarrow").stdout, names)
    assert isinstance(names["dataset"], pyarrow.dataset.Dataset)
    found = names["dataset"].to_table().to_pylist()
    assert sorted(str(row["text"]) for row in found) == ["007", "None", "a:b's"]


def test_text_for_duckdb(lake, invoke):
    fill(lake)
    head, *lines, tail = invoke("files", lake.location, "--form", "duckdb").stdout.splitlines()
    assert head == "SELECT * FROM read_parquet(["
    assert all(line.startswith(f"    '{lake.location}/text=") and line.endswith(".parquet',") for line in lines)
    assert any("/text=a%3Ab%27s/" in line or "/text=a%3Ab''s/" in line for line in lines)
    assert tail == "], union_by_name = true, hive_partitioning = true, hive_types = {'text': VARCHAR});"


def test_text_for_polars(lake, invoke):
    fill(lake)
    shown = invoke("files", lake.location, "--form", "polars").stdout
    compile(shown, "polars", "exec")
    head, _, rest = shown.partition("frame = pl.scan_parquet([\n")
    assert head == "import polars as pl\n\n"
    assert rest.splitlines()[-1] == '], glob=False, hive_partitioning=True, hive_schema={"text": pl.String})'
    assert {json.loads(line.strip().removesuffix(",")) for line in rest.splitlines()[:-1]} == {
        f"{lake.location}/{path}" for path in asyncio.run(lake.paths())
    }


def test_text_of_an_object_store():
    columns = [("day", Primitive("date")), ("n", Primitive("decimal(10, 2)"))]
    arrow = FORMS["pyarrow"]("s3a://lake/orders", columns)
    assert arrow.line("s3://lake/orders/day=1/x") == '"day=1/x"', "a list of paths below a file system"
    assert 'filesystem="s3://lake/orders"' in arrow.tail
    assert 'pa.schema([("day", pa.date32()), ("n", pa.decimal128(10, 2))])' in arrow.tail
    with pytest.raises(Exception, match="is not below s3://lake/orders"):
        arrow.line("s3://other/x")
    duck = FORMS["duckdb"]("s3a://lake/orders", columns)
    assert "hive_types = {'day': DATE, 'n': DECIMAL(10, 2)}" in duck.tail
    unknown = [("t", Primitive("timestamp"))]
    assert 'partitioning="hive"' in FORMS["pyarrow"]("/x", unknown).tail
    assert "hive_schema" not in FORMS["polars"]("/x", unknown).tail


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
