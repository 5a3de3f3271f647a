"""`lakecommit vacuum` in a process of its own, which a test kills or pauses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lakecommit.demo.place import Place

from .processes import PATIENCE_SECONDS, STOPPED, state_and_session

VACUUM = ["vacuum", "--retain", "0m", "--short-retention", "--apply", "--json"]


class VacuumProcess:
    """Of what no version and no lease needs."""

    def __init__(self, location: str, store_options: Mapping[str, str]) -> None:
        way = [f"--store={key}={value}" for key, value in store_options.items()]
        command = [Path(sys.executable).with_name("lakecommit"), *VACUUM, location, *way]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_until(self, condition: Callable[[], object], what: str) -> None:
        """Looks without a pause: the moments that a test waits for are short."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert self._process.poll() is None, f"the vacuum ended before {what}: {self._process.communicate()}"
            assert time.monotonic() < deadline, f"{what} did not happen"

    def finish(self) -> dict[str, Any]:
        """What it says in the end."""
        said, errors = self._process.communicate(timeout=PATIENCE_SECONDS)
        assert self._process.returncode == 0, said + errors
        return json.loads(said)

    def kill(self) -> bool:
        """Whether that came before its end."""
        self._process.kill()
        self._process.communicate()
        return self._process.returncode == -signal.SIGKILL

    def pause(self) -> None:
        os.kill(self._process.pid, signal.SIGSTOP)
        self.wait_until(lambda: (state_and_session(self._process.pid) or " ")[0] == STOPPED, "it stands still")

    def wake(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def clear_away(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def vacuum_starter() -> Iterator[Callable[..., VacuumProcess]]:
    """Gives a function that starts vacuums of a place, by another way if options say so. None is left at the end."""
    started: list[VacuumProcess] = []

    def start(place: Place, **way: str) -> VacuumProcess:
        started.append(VacuumProcess(place.location, {**place.store_options, **way}))
        return started[-1]

    try:
        yield start
    finally:
        for each in started:
            each.clear_away()
