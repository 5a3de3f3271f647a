"""Driver processes that a test starts, watches, pauses and kills; only those, and by their ids."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .job import Job

ROOT = Path(__file__).parent.parent.parent
POLL_SECONDS = 0.1
PATIENCE_SECONDS = 240
_EXECUTOR = b"CoarseGrainedExecutorBackend"
# How a file with manifests of pending epochs begins.
_SEGMENT = b"LCPE"
# As /proc calls it.
STOPPED = "T"


class DriverEnded(AssertionError):
    """The driver ended before what the test waits for happened."""


class Driver:
    """A driver process, with its JVM and everything that they start, in a session of processes of its own."""

    def __init__(self, job: Job, log: Path, scratch: Path) -> None:
        self.job = job
        self._log = log
        environment = {
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(scratch),
            "SPARK_WORKER_DIR": str(scratch),
            "TMPDIR": str(scratch),
        }
        command = [sys.executable, "-m", "tests.process.stream_driver", job.to_json()]
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                # The driver ends with this process, however that ends: see its `end_with_the_test`.
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def text(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def epochs(self) -> dict[int, int]:
        """The epochs that Spark has finished in this run, with the rows that each read."""
        found = [json.loads(line) for line in self._said("EPOCH")]
        return {each["epoch"]: each["rows"] for each in found}

    @property
    def ended(self) -> bool:
        """Whether all input is read."""
        return bool(self._said("ENDED"))

    @property
    def failure(self) -> str | None:
        """Why the query failed, None where it did not."""
        return next((json.loads(text) for text in self._said("FAILED")), None)

    def wait_until(self, condition: Callable[[], object], what: str) -> None:
        """Waits for an event. Raises `DriverEnded` where the process ended without it, and gives up at a bound."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            if not self.running:
                if condition():
                    return
                raise DriverEnded(f"the driver ended before {what}:\n{self.text[-4000:]}")
            assert time.monotonic() < deadline, f"{what} did not happen:\n{self.text[-4000:]}"
            time.sleep(POLL_SECONDS)

    def wait(self, look: Callable[[], object] = lambda: None) -> None:
        """Waits for the end of the process, however it ends. Meanwhile it looks, again and again."""
        with contextlib.suppress(DriverEnded):
            self.wait_until(lambda: look() and False, "nothing")
        self._process.wait()

    def finish(self, look: Callable[[], object] = lambda: None) -> Driver:
        """Waits until all input is read; an error where the query failed."""
        self.wait(look)
        assert self.ended, self.text[-8000:]
        return self

    def kill(self) -> None:
        """SIGKILL to Python and the JVM at once. Their workers find out by themselves, as on a real machine."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def pause(self) -> None:
        """Stops every process of the driver, workers included, and those that are forked meanwhile."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while set(self._states().values()) - {STOPPED}:
            self._send_all(signal.SIGSTOP)
            assert time.monotonic() < deadline, f"processes {self._all()} do not stop"
            time.sleep(POLL_SECONDS)

    def wake(self) -> None:
        self._send_all(signal.SIGCONT)

    def segments(self) -> int:
        """How many files, which have no names, the driver keeps manifests of pending epochs in."""
        opened = Path(f"/proc/{self._process.pid}/fd")
        return sum(_begins_with(opened / name, _SEGMENT) for name in os.listdir(opened))

    def executors(self) -> list[int]:
        """The executors' process ids, oldest first."""
        return sorted(pid for pid in self._all() if _EXECUTOR in _command(pid))

    def kill_executor(self, pid: int) -> None:
        assert pid in self.executors()
        os.kill(pid, signal.SIGKILL)

    def clear_away(self) -> None:
        """Nothing of the driver runs afterwards."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._all():
            self._send_all(signal.SIGKILL)
            self._process.poll()
            assert time.monotonic() < deadline, f"processes {self._all()} do not end"
            time.sleep(POLL_SECONDS)
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _said(self, kind: str) -> list[str]:
        # The last line may be half written.
        lines = self.text.split("\n")[:-1]
        return [line.partition(" ")[2] or kind for line in lines if line.split(" ", 1)[0] == kind]

    def _all(self) -> list[int]:
        """Every living process of the session that the driver leads: whatever it started, at any depth."""
        return list(self._states())

    def _states(self) -> dict[int, str]:
        """The state of each of these."""
        found = {pid: stat for pid in _pids() if (stat := state_and_session(pid))}
        return {pid: state for pid, (state, session) in found.items() if session == self._process.pid}

    def _send_all(self, number: int) -> None:
        for pid in self._all():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


@contextlib.contextmanager
def driver_starter(directory: Path) -> Iterator[Callable[[Job], Driver]]:
    """Gives a function that starts drivers. At the end none of them is left, nor what they kept in temporary files."""
    started: list[Driver] = []
    # Short, because a Unix socket's path has to fit into 107 bytes.
    scratch = Path(tempfile.mkdtemp(prefix="lcp-", dir="/tmp"))

    def start(job: Job) -> Driver:
        driver = Driver(job, directory / f"driver-{len(started)}.log", scratch)
        started.append(driver)
        return driver

    try:
        yield start
    finally:
        for driver in started:
            driver.clear_away()
        shutil.rmtree(scratch, ignore_errors=True)


def _begins_with(path: Path, words: bytes) -> bool:
    """Whether it is a file, still open in its process, that begins so."""
    try:
        with path.open("rb") if path.is_file() else contextlib.nullcontext() as file:
            return file is not None and file.read(len(words)) == words
    except OSError:
        return False


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def state_and_session(pid: int) -> tuple[str, int] | None:
    """Both of a process, None where it is gone or only waits to be collected by its parent."""
    try:
        # The name of the command comes first and may contain anything but a last parenthesis.
        state, _, _, session = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]
    except OSError:
        return None
    return None if state in "ZX" else (state, int(session))


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
