"""Local Spark sessions with Delta, for tests, the demo and the benchmarks."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS: Mapping[str, str] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
}


def delta_session(
    app_name: str, *, extra_conf: Mapping[str, str] | None = None, packages: Sequence[str] = ()
) -> SparkSession:
    """A session on `local[2]` that reads and writes Delta, with workers that run this very Python.

    The first session resolves delta-spark's jar and `packages` as Spark does, which needs the network; where they
    ended up is remembered, so that later ones start from those files. `extra_conf` overrides every setting.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 - Spark is an extra

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    coordinates = [_delta_coordinate(), *packages]
    jars = _remembered(coordinates)
    where = {"spark.jars": ",".join(jars)} if jars else {"spark.jars.packages": ",".join(coordinates)}
    builder = SparkSession.builder.master("local[2]").appName(app_name)
    for key, value in {**_SETTINGS, **where, **(extra_conf or {})}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if not jars:
        _remember(coordinates, session.sparkContext.getConf().get("spark.jars") or "")
    return session


def _delta_coordinate() -> str:
    spark = ".".join(version("pyspark").split(".")[:2])
    return f"io.delta:delta-spark_{spark}_2.13:{version('delta-spark')}"


def _memory(coordinates: Sequence[str]) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = hashlib.sha256("\n".join(coordinates).encode()).hexdigest()[:16]
    return cache / "lakecommit" / f"jars-{name}.json"


def _remembered(coordinates: Sequence[str]) -> list[str]:
    """The jars that an earlier session resolved, nothing where one of them is gone."""
    try:
        jars = json.loads(_memory(coordinates).read_text())
    except (OSError, ValueError):
        return []
    if not isinstance(jars, list) or not all(isinstance(jar, str) and Path(jar).is_file() for jar in jars):
        return []
    return jars


def _remember(coordinates: Sequence[str], resolved: str) -> None:
    jars = [unquote(urlparse(jar).path) for jar in resolved.split(",") if jar]
    if not jars or not all(Path(jar).is_file() for jar in jars):
        return
    memory = _memory(coordinates)
    try:
        memory.parent.mkdir(parents=True, exist_ok=True)
        # Written aside and renamed: two sessions may resolve at the same time.
        aside = memory.with_suffix(f".{os.getpid()}")
        aside.write_text(json.dumps(jars))
        aside.replace(memory)
    except OSError:
        return
