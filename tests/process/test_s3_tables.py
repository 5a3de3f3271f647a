"""Vacuums and leases of tables on a real S3 server, where requests have pages and several keys."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner
from deltalake import write_deltalake
from pyarrow.fs import S3FileSystem

import lakecommit
from lakecommit.cli.main import cli
from lakecommit.state.lease_layout import LEASES
from lakecommit.storage import on_obstore
from lakecommit.vacuuming import sweeping

from .versions import Versions

TOGETHER = 20
EXAMPLES = re.findall(r"```python\n(.*?)```", (Path(__file__).parents[2] / "docs" / "leases.md").read_text(), re.DOTALL)


@pytest.fixture(autouse=True)
def small_requests(monkeypatch):
    for module, name in (
        (on_obstore, "PAGE_OBJECTS"),
        (on_obstore, "BULK_DELETE_KEYS"),
        (sweeping, "DELETED_TOGETHER"),
    ):
        monkeypatch.setattr(module, name, TOGETHER)


def put(place, *objects):
    async def all_at_once():
        store = place.store()
        await asyncio.gather(*(store.put(path, body) for path, body in objects))

    asyncio.run(all_at_once())


def paths(place, below=""):
    async def listed():
        return {info.path async for page in place.store().list(below) for info in page}

    return asyncio.run(listed())


def vacuum(place, *arguments):
    stores = [word for key, value in place.store_options.items() for word in ("--store", f"{key}={value}")]
    asked = ["vacuum", place.location, "--retain", "0m", "--short-retention", "--json", *stores, *arguments]
    result = CliRunner().invoke(cli, asked, prog_name="lakecommit")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def wait_for_a_later_second(place):
    """The store's times are whole seconds: what was put just now is not older than what is put next."""

    async def written_ms(path):
        listed = {info.path: info.modified_ms async for page in place.store().list("_times") for info in page}
        return listed[path]

    put(place, ("_times/before", b""))
    before_ms = asyncio.run(written_ms("_times/before"))
    while True:
        put(place, ("_times/after", b""))
        if asyncio.run(written_ms("_times/after")) > before_ms:
            return


def test_a_vacuum_deletes_many_keys_together_and_finds_others_in_a_listing(place_on_s3, table_format):
    names = [f"k=a&b <{number:02}>/ü %20'.parquet" for number in range(2 * TOGETHER + 5)]
    orphans = [f"orphans/{number:02}.parquet" for number in range(TOGETHER + 5)]
    versions = Versions(place_on_s3, table_format)
    versions.put([*names, "live.parquet"])
    put(place_on_s3, *((name, b"x") for name in orphans))
    with lakecommit.lease(place_on_s3.location, ttl="1m", **place_on_s3.store_options) as lease:
        files = {f"{place_on_s3.location}/{name}" for name in [*names, "live.parquet"]}
        assert (lease.version, set(lease.files())) == (0, files)
        versions.put(removed=names)
        held = vacuum(place_on_s3, "--apply")
        assert (held["applied"]["deleted"], held["heldBack"][0]["files"]) == (0, len(names))
        assert set(lease.files()) == files
    assert paths(place_on_s3, LEASES) == set()
    assert vacuum(place_on_s3)["files"] == len(names)
    place_on_s3.s3.reset_counts()
    assert vacuum(place_on_s3, "--apply")["applied"]["deleted"] == len(names)
    assert paths(place_on_s3) & {*names, *orphans, "live.parquet"} == {*orphans, "live.parquet"}
    assert place_on_s3.s3.counts()["BULK-DELETE"] >= 3
    wait_for_a_later_second(place_on_s3)
    assert vacuum(place_on_s3, "--full", "--orphans-after", "0m", "--apply")["applied"]["deleted"] == len(orphans)
    assert {path for path in paths(place_on_s3) if not path.startswith("_")} == {"live.parquet"}


@pytest.mark.parametrize("reader", ["deltalake", "polars"])
def test_the_examples_of_the_docs_read_what_a_lease_keeps(place_on_s3, reader):
    """Those of readers that take the options of a store."""
    for ids in ([1, 2], [3]):
        write_deltalake(
            place_on_s3.location, pa.table({"id": ids}), mode="append", storage_options=place_on_s3.deltalake_options
        )
    (example,) = (each for each in EXAMPLES if re.search(rf"^(from|import) {reader}\b", each, re.MULTILINE))
    found = {"location": place_on_s3.location, "options": place_on_s3.store_options}
    exec(example.replace("lease(location)", "lease(location, **options)"), found)
    assert sorted(pa.table(found["rows"])["id"].to_pylist()) == [1, 2, 3]
    with lakecommit.lease(place_on_s3.location, **place_on_s3.store_options) as lease:
        options = place_on_s3.store_options
        keys = {"access_key": options["access_key_id"], "secret_key": options["secret_access_key"]}
        on_s3 = S3FileSystem(endpoint_override=options["endpoint"], region=options["region"], **keys)
        paths_there = [each.removeprefix("s3://") for each in lease.files()]
        assert ds.dataset(paths_there, filesystem=on_s3, format="parquet").count_rows() == 3
    assert paths(place_on_s3, LEASES) == set()
