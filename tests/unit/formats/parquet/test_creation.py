"""What readers call a directory, and what of Spark's own log is taken over."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace

import pytest

from lakecommit.errors import InvalidInput, SchemaMismatch
from lakecommit.formats.parquet.creation import root_of
from lakecommit.formats.parquet.names import LOG
from tests.lake import QUERY, SCHEMA, SETTINGS

_COLLATED = '"c", "type": "string", "nullable": true, "metadata": {"__COLLATIONS": {"c": "spark.UTF8_LCASE"}}'


def run(work):
    return asyncio.run(work)


@pytest.mark.parametrize(
    ("location", "root"),
    [
        ("/data/a b", "file:///data/a%20b"),
        ("s3://lake/orders", "s3a://lake/orders"),
        ("s3a://lake/a b%", "s3a://lake/a%20b%25"),
        ("gs://lake/orders", "gs://lake/orders"),
        ("abfss://c@account.dfs.core.windows.net/orders", "abfss://c@account.dfs.core.windows.net/orders"),
    ],
)
def test_how_readers_name_a_directory(location, root):
    assert root_of(location) == root


def test_what_readers_call_it_has_to_be_said_where_nobody_knows():
    with pytest.raises(InvalidInput, match="give it as the option readPath"):
        root_of("az://container/orders")


def test_a_user_says_how_readers_name_it(table):
    async def scenario():
        settings = replace(SETTINGS, properties={"readPath": "s3a://other/name/", "compactInterval": "3"})
        for epoch in range(4):
            await table.epoch(table.committer(), epoch, [epoch], settings=settings)
        assert await table.root() == "s3a://other/name"
        assert len(await table.files()) == 4
        assert "2.compact" in await table.log()

    run(scenario())


def test_a_log_of_spark_that_does_not_fit_is_refused(table):
    async def scenario():
        await table.sparks_sink(0, [0])
        partitioned = replace(SETTINGS, partition_columns=("text",))
        with pytest.raises(InvalidInput, match="whose directories do not fit partitionBy"):
            await table.epoch(table.committer(), 1, [1], settings=partitioned)
        table.schema = table.schema.replace('"id", "type": "long"', '"id", "type": "string"')
        with pytest.raises(InvalidInput, match=r"the newest file of .* does not fit the data: column id"):
            await table.epoch(table.committer(), 1, [])
        assert [name for name in await table.log() if name.startswith(".")] == []

    run(scenario())


def test_a_log_of_spark_with_a_hole_is_refused(table):
    async def scenario():
        for epoch in (0, 1, 2):
            await table.sparks_sink(epoch, [epoch])
        await table.store.delete([f"{LOG}/1"])
        with pytest.raises(InvalidInput, match=r"has no entries \[1\]"):
            await table.epoch(table.committer(), 3, [3])

    run(scenario())


def test_partition_columns_that_spark_would_misread_are_refused(table):
    async def scenario():
        schema = SCHEMA.replace('"text", "type": "string"', '"text", "type": "double"')
        settings = replace(SETTINGS, partition_columns=("text",))
        with pytest.raises(SchemaMismatch, match=r"partition column text is double.*cast it"):
            await table.committer().plan(schema, settings, queries=[QUERY])
        assert await table.paths("_spark_metadata") == []

    run(scenario())


def test_columns_can_be_added_and_nothing_else(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [0])
        wider = SCHEMA.replace(
            '"fields": [', '"fields": [{"name": "n", "type": "long", "nullable": true, "metadata": {}},'
        )
        merging = replace(SETTINGS, merge_schema=True)
        with pytest.raises(SchemaMismatch, match="column n is not in the table"):
            await committer.plan(wider, SETTINGS, queries=[QUERY])
        planned = await committer.plan(wider, merging, queries=[QUERY])
        assert [field["name"] for field in (await table.record())["schema"]["fields"]] == ["id", "text", "n"]
        assert planned.plan.owner == QUERY
        other = SCHEMA.replace('"id", "type": "long"', '"id", "type": "string"')
        with pytest.raises(SchemaMismatch, match="column id is string, but bigint"):
            await committer.plan(other, merging, queries=[QUERY])
        collated = wider.replace('"n", "type": "long", "nullable": true, "metadata": {}', _COLLATED)
        with pytest.raises(SchemaMismatch, match="column c has a collation"):
            await committer.plan(collated, merging, queries=[QUERY])
        assert len((await table.record())["schema"]["fields"]) == 3
        await table.epoch(table.committer(), 1, [1])
        assert await table.ids() == [0, 1]

    run(scenario())


PROGRAM = """
import asyncio, sys, types
import lakecommit.formats.delta.settings

class NoDelta:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("deltalake", "delta") or name.startswith("lakecommit.formats.delta."):
            raise ImportError(f"{name} is imported for a Parquet directory")

sys.meta_path.insert(0, NoDelta())
# What the adapters of the tests name, and nobody calls.
unused = sys.modules["lakecommit.formats.delta.table"] = types.ModuleType("unused")
unused.DeltaFormat = None
from lakecommit.options.parsing import parse_options
from tests.lake import Lake
from tests.lake.directory import Directory

async def stream():
    lake = Lake.in_memory()
    table = Directory(lake.clock, lake.store, lake.flaky)
    for epoch in range(12):
        await table.epoch(table.committer(), epoch, [epoch])
    return await table.ids()

parse_options({"path": "/x", "tableFormat": "parquet"}, streaming=True)
print(asyncio.run(stream()))
"""


def test_the_parquet_format_needs_no_delta():
    """Only what users set in Delta's words is known, so that a wrong option is told from an unknown one."""
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert ended.stdout == f"{list(range(12))}\n", ended.stderr
