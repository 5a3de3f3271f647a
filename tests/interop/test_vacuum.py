"""Tables that delta-spark changes in all of its ways, vacuumed by lakecommit: what is left reads as before, and what is
gone is what delta-spark's own VACUUM would take."""

from __future__ import annotations

import asyncio
import os
import random
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakecommit.clock import SystemClock
from lakecommit.leases.who import Who
from lakecommit.storage.location import open_store
from lakecommit.vacuuming.asked import Asked
from lakecommit.vacuuming.report import Vacuumed
from lakecommit.vacuuming.vacuum import Means, TableVacuum
from tests.interop.appending import delta_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
PROPERTIES = "'delta.enableDeletionVectors'='true', 'delta.enableChangeDataFeed'='true'"


def vacuum(path: Path, **asked: Any) -> Vacuumed:
    means = Means(Who("a test"), lambda: uuid.uuid4().hex, SystemClock(), random.random)
    return asyncio.run(TableVacuum(open_store(str(path), {}), delta_at(path), Asked(**asked), means).apply())


def files(path: Path) -> set[str]:
    found = {str(each.relative_to(path)) for each in path.rglob("*") if each.is_file()}
    return {each for each in found if not each.startswith(("_delta_log", "_lakecommit")) and not each.endswith(".crc")}


def rows(spark: SparkSession, path: Path, version: int | None = None) -> list[Any]:
    at = "" if version is None else f" VERSION AS OF {version}"
    return sorted(map(tuple, spark.sql(f"SELECT * FROM delta.`{path}`{at}").collect()))


def dry_run(spark: SparkSession, path: Path, kind: str = "") -> set[str]:
    found = spark.sql(f"VACUUM delta.`{path}` {kind} RETAIN 0 HOURS DRY RUN").collect()
    uris = {row[0].removeprefix("file:") for row in found}
    return {str(Path(uri).relative_to(path)) for uri in uris if Path(uri).is_file()}


def change_in_many_ways(spark: SparkSession, path: Path) -> None:
    """Each line is a version."""
    table = f"delta.`{path}`"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, p STRING) USING DELTA PARTITIONED BY (p) TBLPROPERTIES ({PROPERTIES})")
    for statement in (
        "INSERT INTO T SELECT /*+ COALESCE(1) */ id, 'a b' FROM range(100)",
        "INSERT INTO T SELECT /*+ COALESCE(1) */ id, 'c%d' FROM range(100)",
        "DELETE FROM T WHERE id = 1",
        "UPDATE T SET id = -id WHERE id IN (2, 3)",
        "OPTIMIZE T",
        "DELETE FROM T WHERE p = 'c%d'",
        "RESTORE TABLE T TO VERSION AS OF 4",
        "DELETE FROM T WHERE id = 5",
        "INSERT INTO T VALUES (1000, 'e')",
    ):
        spark.sql(statement.replace(" T ", f" {table} ").replace("OPTIMIZE T", f"OPTIMIZE {table}")).collect()


def make_old(path: Path, versions: range) -> None:
    at = time.time() - 10 * 86_400
    for version in versions:
        os.utime(path / "_delta_log" / f"{version:020d}.json", (at, at))


# What tests/unit/vacuuming does with logs that are written by hand stands for this in `make test`.
@pytest.mark.soak
def test_a_table_that_was_changed_in_many_ways(spark: SparkSession, tmp_path: Path) -> None:
    path, clone = tmp_path / "table", tmp_path / "clone"
    change_in_many_ways(spark, path)
    newest = max(int(each.stem) for each in (path / "_delta_log").glob("*.json"))
    spark.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{path}`")
    spark.sql(f"DELETE FROM delta.`{clone}` WHERE id = 7")
    make_old(path, range(newest - 2))
    before = {version: rows(spark, path, version) for version in range(newest - 2, newest + 1)}
    cloned = rows(spark, clone)

    # Within the retention every version reads as before, and the newest three need what older ones have removed.
    there = files(path)
    assert vacuum(path).well
    assert files(path) < there
    assert {version: rows(spark, path, version) for version in before} == before
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", newest - 2)
    assert feed.load(str(path)).count() > 0

    # Of a clone only what is its own goes, and what it was cloned from stays.
    (clone / "orphan.parquet").write_bytes(b"x")
    there = files(path)
    assert vacuum(clone, retain_ms=0, full=True, orphans_after_ms=0, short=True).well
    assert files(path) == there and "orphan.parquet" not in files(clone)
    assert rows(spark, clone) == cloned

    # Without retention, what goes is what delta-spark would delete.
    (path / "orphan.parquet").write_bytes(b"x")
    spark.conf.set(CHECK, "false")
    try:
        by_delta, lite = dry_run(spark, path), dry_run(spark, path, "LITE")
    finally:
        spark.conf.unset(CHECK)
    there = files(path)
    assert vacuum(path, retain_ms=0, short=True).well
    by_log = there - files(path)
    assert by_log and by_log <= by_delta and by_log == lite & there
    assert vacuum(path, retain_ms=0, full=True, orphans_after_ms=0, short=True).well
    assert there - files(path) == by_delta
    assert rows(spark, path) == before[newest]
