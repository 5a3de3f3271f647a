"""A driver without Spark that commits epochs of one query and tells a listener: to be killed.

python -m tests.process.listening_driver LOCATION NOTES FIRST LAST hangs|goes-on delta|parquet

Each line of NOTES is an epoch that the listener was told of. One that `hangs` notes it and never returns.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from lakecommit.clock import SystemClock
from lakecommit.listening.calls import call_in_thread
from tests.lake.directory import LAKES
from tests.unit.listening.lake import by_day


class Noting:
    name = "noting"

    def __init__(self, notes: Path, hangs: bool) -> None:
        self._notes = notes
        self._hangs = hangs

    def on_snapshot(self, snapshot):
        with self._notes.open("a") as file:
            file.writelines(f"{epoch}\n" for epoch in range(snapshot.first_epoch, snapshot.last_epoch + 1))
        while self._hangs:
            time.sleep(3600)


async def main(location, notes, first, last, manner, table_format):
    lake = by_day(SystemClock(), location, LAKES[table_format])
    lake.numbers = iter(range(1000 * int(first), 10**9))
    committer = lake.committer(Noting(Path(notes), manner == "hangs"), call=call_in_thread)
    for epoch in range(int(first), int(last) + 1):
        await lake.epoch(committer, epoch)
    await committer.settle_listeners()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
