"""Rows that come from Python, and a task that stops in the middle of them for as long as a test likes, or fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import functions as F  # noqa: N812 (as every Spark user writes it)

FEW_IDS = range(10)
# With a file for each row, a task that has half of these writes its first manifest before it stops: as many files, and
# as many bytes, make it. More bytes than Spark buffers come back from Python, too.
MANY_IDS = range(1000)
LENGTH = 1024
ROWS_AT_ONCE = 10
_AT_ONCE = "spark.sql.execution.arrow.maxRecordsPerBatch"


@dataclass(frozen=True)
class Fault:
    """While it is `set`, task 1 stops at its last rows; it goes on when it is `released`, and then fails if it `fails`.

    `directory` has what tells. Where `writers` is given, it does not stop before a manifest of its own is in there.
    """

    directory: Path
    writers: Path | None = None
    fails: bool = True

    def set(self) -> None:
        self.directory.mkdir()
        (self.directory / "set").touch()

    def release(self) -> None:
        (self.directory / "released").touch()

    def remove(self) -> None:
        (self.directory / "set").unlink()

    @property
    def met(self) -> bool:
        return (self.directory / "met").exists()

    def into(self, frame):
        """The same rows with another column, which comes from Python; where files are waited for, a long one."""
        directory, writers, fails, seen = self.directory, self.writers, self.fails, []
        before, length, times = (3, 1, 1) if writers is None else (450, LENGTH, 32)

        # Shipped to workers as it is, since those need not have the tests.
        def padding(id_):
            import time  # noqa: PLC0415

            from pyspark import TaskContext  # noqa: PLC0415

            seen.append(id_)
            if len(seen) == before and TaskContext.get().partitionId() == 1 and (directory / "set").exists():
                while writers is not None and not list(writers.rglob("1-*.avro")):
                    time.sleep(0.01)
                (directory / "met").touch()
                while not (directory / "released").exists():
                    time.sleep(0.01)
                if fails:
                    raise RuntimeError("the fault of task 1")
            return str(id_).zfill(length)

        made = F.udf(padding, useArrow=False).asNondeterministic()("id")
        return frame.withColumn("padding", made).withColumn("padding", F.repeat("padding", F.lit(times)))


@pytest.fixture
def small_batches(spark):
    before = spark.conf.get(_AT_ONCE)
    spark.conf.set(_AT_ONCE, str(ROWS_AT_ONCE))
    yield
    spark.conf.set(_AT_ONCE, before)


def wait_for(event: Callable[[], object]) -> None:
    deadline = time.monotonic() + 240
    while not event():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)
