"""Kills the demo's driver with SIGKILL, where it hurts, and looks at what it left."""

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

from lakecommit.clock import SystemClock
from lakecommit.demo.driver import DriverSettings
from lakecommit.demo.place import Place
from lakecommit.errors import CommitFailed
from lakecommit.formats.delta.log import open_table
from lakecommit.inspection import users_of
from lakecommit.state import layout

LONGEST_RUN_SECONDS = 600
Progress = Callable[[int, int, int], None]


@dataclass(frozen=True, slots=True)
class LeftByAKill:
    """What a killed driver left: epochs that are sealed and in no snapshot, and files that nobody has reported."""

    epoch: int
    pending_epochs: int
    pending_rows: int
    staged_files: int


class Driver:
    """One run of the stream in a process group of its own. Use as a context manager: nothing of it is left running."""

    def __init__(self, place: Place, source: Path, checkpoint: Path, log: Path) -> None:
        settings = DriverSettings(place.location, place.store_options, str(source), str(checkpoint))
        self._place = place
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

    def run(self, on_progress: Progress, *, kill_after: int | None, sealed: bool) -> LeftByAKill | None:
        """Follows the stream to its end (None), or kills it soon after epoch number `kill_after` has ended.

        Killed either as soon as the next epoch is `sealed`, before its version if we are quick enough, or while its
        tasks are writing.
        """
        while True:
            line = self._line()
            if line is None:
                if self._process.wait() != 0:
                    raise CommitFailed(f"the demo's stream has failed: {self._log.read_text()[-2000:]}")
                return None
            seen = json.loads(line)
            on_progress(seen["epochs"], seen["rows"], seen["duration_ms"])
            if kill_after is not None and seen["epochs"] >= kill_after:
                before = _newest(self._place, sealed=sealed)
                while _newest(self._place, sealed=sealed) == before and self._process.poll() is None:
                    self._check_time()
                self._kill()
                return asyncio.run(_left(self._place))

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def _line(self) -> bytes | None:
        self._check_time()
        try:
            return self._lines.get(timeout=LONGEST_RUN_SECONDS) or None
        except queue.Empty:
            raise CommitFailed(f"the demo's stream stands still; its log is {self._log}") from None

    def _check_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise CommitFailed(f"the demo's stream takes too long; its log is {self._log}")

    def _kill(self) -> None:
        """The whole group at once: Python, the JVM and its workers."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _newest(place: Place, *, sealed: bool) -> str:
    """The newest seal, or the newest epoch that has a manifest."""
    if place.s3 is not None:
        wanted = layout.parse_seal_path if sealed else layout.parse_manifest_path
        return max(
            (key.partition("/")[2] for _, key in place.s3.requests() if wanted(key.partition("/")[2])), default=""
        )
    users = Path(place.location, layout.users_prefix())
    found = users.glob("*/seals/*.avro" if sealed else "*/writers/*")
    return max((path.name for path in found), default="")


async def _left(place: Place) -> LeftByAKill:
    store = place.store()
    table = await open_table(store, SystemClock())
    users = await users_of(store, table)
    pending = [epoch for user in users for epoch in user.pending]
    unsealed = [epoch for user in users for epoch in user.unsealed]
    newest = [epoch.epoch for epoch in (*pending, *unsealed)]
    marks = [user.marks.mark for user in users if user.marks.mark is not None]
    return LeftByAKill(
        epoch=max([*newest, *marks], default=0),
        pending_epochs=len(pending),
        pending_rows=sum(epoch.rows for epoch in pending),
        staged_files=sum(epoch.files for epoch in unsealed) + sum(epoch.lost_files for epoch in pending),
    )
