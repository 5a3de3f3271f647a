"""One of many processes that write to one table at the same time: each write has one row, whose id is its own.

python -m tests.process.many_writers KIND LOCATION FIRST COUNT

KIND is append or overwrite, which are lakecommit's, or deltalake or delta-spark. It says READY, waits for a line, and
then says for each write a line of JSON: the id, and whether it was committed.
"""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from collections.abc import Callable, Iterator

import deltalake
import pyarrow as pa

from lakecommit.errors import ConflictingWrite
from tests.lake import Lake
from tests.lake.stories import batch, overwrite


def own(location: str, write: Callable) -> Iterator[Callable[[int], bool]]:
    table = Lake.at(location)
    committer = table.committer()
    loop = asyncio.new_event_loop()

    def one(number: int) -> bool:
        try:
            loop.run_until_complete(write(table, committer, [number], query=f"batch-{uuid.uuid4()}"))
        except ConflictingWrite:
            return False
        return True

    yield one


def by_deltalake(location: str) -> Iterator[Callable[[int], bool]]:
    def one(number: int) -> bool:
        rows = pa.table({"id": pa.array([number], pa.int64()), "text": pa.array([f"row {number}"])})
        try:
            deltalake.write_deltalake(location, rows, mode="append")
        except deltalake.exceptions.CommitFailedError:
            return False
        return True

    yield one


def by_delta_spark(location: str) -> Iterator[Callable[[int], bool]]:
    from lakecommit.testing.sessions import delta_session  # noqa: PLC0415 (only here Java is needed)

    spark = delta_session("lakecommit-many-writers")

    def one(number: int) -> bool:
        rows = spark.createDataFrame([(number, f"row {number}")], "id long, text string").coalesce(1)
        try:
            rows.write.format("delta").mode("append").save(location)
        except Exception as error:
            assert "Concurrent" in str(error), error
            return False
        return True

    yield one
    spark.stop()


KINDS = {
    "append": lambda location: own(location, batch),
    "overwrite": lambda location: own(location, overwrite),
    "deltalake": by_deltalake,
    "delta-spark": by_delta_spark,
}


def main(kind: str, location: str, first: str, count: str) -> None:
    for one in KINDS[kind](location):
        print("READY", flush=True)
        sys.stdin.readline()
        for number in range(int(first), int(first) + int(count)):
            print(json.dumps([number, one(number)]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
