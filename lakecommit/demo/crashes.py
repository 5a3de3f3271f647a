"""Kills the demo's driver with SIGKILL, where it hurts, and looks at what it left.

Where it hurts: some epochs are sealed and in no version of the table yet, and the tasks of the next one are writing.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lakecommit.demo.driver import DriverSettings
from lakecommit.demo.place import Place, table_in
from lakecommit.errors import CommitFailed
from lakecommit.observing.status import queries_of
from lakecommit.state import layout

LONGEST_RUN_SECONDS = 600
GLANCE_SECONDS = 0.005
MOST_PENDING = 3


@dataclass(frozen=True, slots=True)
class LeftByAKill:
    """What a killed driver left: epochs that are sealed and in no snapshot, and files that nobody has reported."""

    epoch: int
    pending_epochs: int
    pending_rows: int
    staged_files: int


@dataclass(frozen=True, slots=True)
class Kill:
    """The driver's versions hold no epoch from `hold` on, and it is killed once an epoch after `sealed` has begun."""

    hold: int
    sealed: int


def next_kill(epochs: int, kills: int, done: int, newest_seal: int) -> Kill | None:
    """When to kill a driver of a stream of `epochs` files that was killed `done` times of `kills` so far.

    Kills are spread over the stream, and each leaves up to `MOST_PENDING` epochs pending; none where all are done.
    """
    if done >= kills:
        return None
    hold = max(epochs * (done + 1) // (kills + 1), newest_seal + 1)
    pending = max(1, min(MOST_PENDING, epochs // (kills + 1) - 1))
    return Kill(hold, hold + pending - 1)


class Driver:
    """One run of the stream in a process group of its own. Use as a context manager: nothing of it is left running."""

    def __init__(self, place: Place, source: Path, checkpoint: Path, log: Path, kill: Kill | None) -> None:
        hold = None if kill is None else kill.hold
        settings = DriverSettings(place.location, place.store_options, str(source), str(checkpoint), hold)
        self._place = place
        self._due = kill
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "lakecommit.demo.driver", settings.to_json()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        self._deadline = time.monotonic() + LONGEST_RUN_SECONDS

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._kill()

    def run(self, on_progress: Callable[[int, int, int], None]) -> LeftByAKill | None:
        """Follows the stream to its end (None), or kills it where it hurts."""
        # Often: it takes a task some milliseconds to write its files.
        while (line := self._line(GLANCE_SECONDS)) != b"":
            seen = json.loads(line) if line is not None else None
            if seen:
                on_progress(seen["epochs"], seen["rows"], seen["duration_ms"])
            if self._due is not None and self._hurts(self._due, read_all=seen == {}):
                self._due = None
                if self._kill():
                    return asyncio.run(_left(self._place))
        if self._process.wait() != 0:
            raise CommitFailed(f"the demo's stream has failed: {self._log.read_text()[-2000:]}")
        return None

    def _hurts(self, due: Kill, *, read_all: bool) -> bool:
        """Whether enough is sealed and the next epoch has begun, or there is no next one."""
        if read_all:
            return newest_epoch(self._place, sealed=True) >= due.hold
        return newest_epoch(self._place, sealed=False) > due.sealed

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def _line(self, wait_s: float) -> bytes | None:
        """The next line, empty where there are no more; None where none has come so far."""
        if time.monotonic() > self._deadline:
            raise CommitFailed(f"the demo's stream takes too long; its log is {self._log}")
        try:
            return self._lines.get(timeout=wait_s)
        except queue.Empty:
            return None

    def _kill(self) -> bool:
        """The whole group at once: Python, the JVM and its workers. Whether it had not ended by itself."""
        os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.wait() == -signal.SIGKILL


def newest_epoch(place: Place, *, sealed: bool) -> int:
    """The newest epoch that has a seal, or that has a manifest; -1 where none has."""
    if place.s3 is None:
        queries = Path(place.location, layout.queries_prefix())
        found = queries.glob("*/seals/*.avro" if sealed else "*/writers/*")
        return max((int(path.stem) for path in found), default=-1)
    keys = [key.partition("/")[2] for _, key in place.s3.requests()]
    if sealed:
        return max((seal[1] for key in keys if (seal := layout.parse_seal_path(key))), default=-1)
    return max((named[0].epoch for key in keys if (named := layout.parse_manifest_path(key))), default=-1)


async def _left(place: Place) -> LeftByAKill:
    store = place.store()
    queries = await queries_of(store, await table_in(store))
    pending = [epoch for query in queries for epoch in query.pending]
    begun = [epoch for query in queries for epoch in query.open]
    newest = [epoch.epoch for epoch in (*pending, *begun)]
    marks = [query.marks.mark for query in queries if query.marks.mark is not None]
    return LeftByAKill(
        epoch=max([*newest, *marks], default=0),
        pending_epochs=len(pending),
        pending_rows=sum(epoch.rows for epoch in pending),
        staged_files=sum(epoch.files for epoch in begun) + sum(epoch.lost_files for epoch in pending),
    )
