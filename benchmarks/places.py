"""Where a benchmark writes: local disk, or a local S3 that counts requests and can add a delay to each."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

import lakecommit
from lakecommit.testing.s3 import LocalS3
from lakecommit.testing.sessions import delta_session

# Only delta-spark and Spark's own sinks need it: lakecommit brings its own client.
HADOOP_AWS = "org.apache.hadoop:hadoop-aws:3.5.0"


@dataclass(frozen=True)
class Bench:
    """A session and a place to write to. `delay_ms` is what each request to S3 takes longer."""

    spark: SparkSession
    scratch: Path
    s3: LocalS3 | None
    delay_ms: float

    @property
    def name(self) -> str:
        return "local disk" if self.s3 is None else f"s3, {self.delay_ms:g} ms more a request"

    def location(self, table: str, sink: str) -> str:
        if self.s3 is None:
            return str(self.scratch / table)
        return f"{'s3' if sink == 'lakecommit' else 's3a'}://bench/{table}"

    def options(self, sink: str) -> dict[str, str]:
        if self.s3 is None or sink != "lakecommit":
            return {}
        return {f"store.{key}": value for key, value in self.s3.store_options().items()}

    def drop(self, table: str) -> None:
        """Removes a table from local disk; the S3 server forgets everything at the end."""
        if self.s3 is None:
            shutil.rmtree(self.scratch / table, ignore_errors=True)


@contextmanager
def bench(*, on_s3: bool, delay_ms: float, conf: Mapping[str, str] | None = None) -> Iterator[Bench]:
    """Starts everything and ends it; `conf` are settings of the one session that all sinks share."""
    with tempfile.TemporaryDirectory(prefix="lakecommit-bench-") as scratch:
        if not on_s3:
            spark = _session(conf or {}, ())
            yield Bench(spark, Path(scratch), None, 0)
            spark.stop()
            return
        with LocalS3() as s3:
            s3.create_bucket("bench")
            spark = _session({**_s3a(s3), **(conf or {})}, (HADOOP_AWS,))
            s3.set_delay(delay_ms)
            yield Bench(spark, Path(scratch), s3, delay_ms)
            spark.stop()


def _session(extra: Mapping[str, str], packages: tuple[str, ...]) -> SparkSession:
    spark = delta_session("lakecommit-bench", extra_conf={"spark.driver.memory": "4g", **extra}, packages=packages)
    lakecommit.register(spark)
    # A round ends in the middle of an epoch, and Spark would tell at length that its tasks were interrupted.
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _s3a(s3: LocalS3) -> dict[str, str]:
    options = s3.store_options()
    return {
        "spark.hadoop.fs.s3a.endpoint": s3.endpoint,
        "spark.hadoop.fs.s3a.access.key": options["access_key_id"],
        "spark.hadoop.fs.s3a.secret.key": options["secret_access_key"],
        "spark.hadoop.fs.s3a.endpoint.region": options["region"],
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        # One driver writes: the mode in which delta-spark is meant to write S3 without a lock table.
        "spark.delta.logStore.s3a.impl": "io.delta.storage.S3SingleDriverLogStore",
    }
