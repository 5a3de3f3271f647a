"""The committer's door in the driver's process: a Unix socket in a private directory, with a key.

Each connection carries one request and one answer. Whoever comes without the key, with garbage, with an endless
message or says nothing is cut off; the service goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
import shutil
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeoutError
from multiprocessing import AuthenticationError, connection
from pathlib import Path
from typing import Any, Protocol, TypeVar

from lakecommit.commands import command
from lakecommit.committing.table import LONGEST_START_MS
from lakecommit.concurrency.loops import LoopThread
from lakecommit.errors import CommitFailed, LakecommitError, StillPending
from lakecommit.listening.api import CommitListener
from lakecommit.model import QueryId
from lakecommit.service import wire
from lakecommit.service.dispatch import Committers, Facts, Restart
from lakecommit.state.container import MAX_OBJECT_BYTES

T = TypeVar("T")

ADDRESS_VARIABLE = "LAKECOMMIT_COMMITTER"
SESSION_VARIABLE = "LAKECOMMIT_SESSION"
MAX_MESSAGE_BYTES = 2 * MAX_OBJECT_BYTES
HANDSHAKE_SECONDS = 10.0
ACCEPT_PAUSE_SECONDS = 0.1
TIDY_SECONDS = 60.0
LAST_DRAIN_SECONDS = 10.0
LAST_LISTEN_SECONDS = 5.0
LAST_TIDY_SECONDS = 5.0
LAST_UPKEEP_SECONDS = 10.0
LAST_LOOP_SECONDS = 5.0
# Longer than the committer itself waits, which it does where it has decided and the table is slow.
LONGEST_RESUME_SECONDS = LONGEST_START_MS / 1000 + 5
MAX_CONNECTIONS = 64

_SOCKET = "committer.sock"
_KEY = "committer.key"
_DEFAULTS = "defaults.json"
_log = logging.getLogger("lakecommit.service")


class Unreachable(Exception):
    """No committer answers at the address; the caller may do the work inline."""


class Session(Protocol):
    def facts(self, request: wire.Request) -> Facts:
        """What the Spark session knows about a request. Called from any thread."""


class CommitterService:
    """Runs committers on an event loop of its own and serves them until it is closed."""

    def __init__(self, committers: Committers, session: Session) -> None:
        self._committers = committers
        self._session = session
        self._defaults: dict[str, Mapping[str, str]] = {}
        self.directory = tempfile.mkdtemp(prefix="lakecommit-", dir=_short_directory())
        self._key = secrets.token_bytes(32)
        key_file = os.open(os.path.join(self.directory, _KEY), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(key_file, "wb") as file:
            file.write(self._key)
        # The key is checked on the connection's own thread: a peer that never answers must not hold up the next one.
        self._listener = connection.Listener(os.path.join(self.directory, _SOCKET), family="AF_UNIX", backlog=64)
        self._slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._closed = False
        self._closing = threading.Lock()
        self._loop = LoopThread("lakecommit-committer")
        self._tidying = self._loop.begin(self._tidy_always())
        self._accept_thread = threading.Thread(target=self._accept, name="lakecommit-accept", daemon=True)
        self._accept_thread.start()

    def begin_run(self, query: QueryId) -> None:
        """A run of a query begins. Never waits, and does nothing once the service is closed."""
        with self._closing:
            if not self._closed:
                self._loop.soon(self._committers.begin_run, query)

    def resume(self, restart: Restart) -> bool:
        """Has what earlier runs of a query left committed; whether Spark need not repeat the epoch that it would.

        Waits only where there is such an epoch, and not for ever. Never fails: the first epoch meets what is wrong.
        """

        async def resumed() -> bool:
            try:
                return await self._committers.resume(restart)
            except LakecommitError as error:
                _log.info("what earlier runs of query %s left waits for its first epoch: %s", restart.query, error)
            except Exception:
                _log.exception("what earlier runs of query %s left waits for its first epoch", restart.query)
            return False

        with self._closing:
            if self._closed:
                return False
            resuming = self._loop.begin(resumed())
        try:
            return restart.repeated is not None and resuming.result(LONGEST_RESUME_SECONDS)
        except (FutureTimeoutError, CancelledError):
            return False

    def end_run(self, query: QueryId) -> None:
        """A run of a query has ended; what is pending of it is committed. Never waits, as above."""
        with self._closing:
            if not self._closed:
                self._loop.soon(self._committers.end_run, query)

    def listen(self, listeners: Sequence[CommitListener]) -> None:
        """Has listeners, which were checked, told of snapshots from now on. Never waits, as above."""
        with self._closing:
            if not self._closed:
                self._loop.soon(self._committers.listen, listeners)

    def drain(self, timeout: float) -> None:
        """Has everything that is pending committed and waits for it, at most `timeout` seconds.

        Raises `StillPending` if that was not long enough, and what made a commit fail if one did.
        """

        async def within_time() -> None:
            try:
                await asyncio.wait_for(self._committers.drain(), timeout)
            except asyncio.TimeoutError:
                left = "; ".join(_pending_lines(self._committers))
                raise StillPending(
                    f"after {timeout:g} s {left}; wait longer, or let the query's next epoch commit it"
                ) from None

        with contextlib.suppress(Unreachable):
            self.run(within_time())

    def newest_version(self, options: Mapping[str, str], defaults: Mapping[str, str]) -> int | None:
        """The version of the table that a batch write with `options` finds now; None where there is none."""
        return self.run(self._committers.newest_version(options, defaults))

    def metrics(self) -> dict[str, dict[str, dict[str, object]]]:
        """What the committers have done, by table and query; nothing once the service is closed."""

        async def read() -> dict[str, dict[str, dict[str, object]]]:
            return self._committers.metrics.read()

        try:
            return self.run(read())
        except Unreachable:
            return {}

    async def _tidy_always(self) -> None:
        """Cleans up from time to time, beside everything else."""
        while True:
            await asyncio.sleep(TIDY_SECONDS)
            try:
                await self._committers.tidy()
            except Exception:
                _log.exception("cleaning up failed; it is tried again")

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the committers' loop and waits for it; `Unreachable` once the service is closed."""
        with self._closing:
            if self._closed:
                work.close()
                raise Unreachable("the committer has ended")
            future = self._loop.begin(work)
        return future.result()

    def close(self) -> None:
        with self._closing:
            if self._closed:
                return
            self._closed = True
        with contextlib.suppress(OSError):
            # Closing a listener does not wake a thread in accept(); a last connection does.
            connection.Client(os.path.join(self.directory, _SOCKET), family="AF_UNIX").close()
        self._accept_thread.join(timeout=5)
        self._listener.close()
        self._tidying.cancel()
        try:
            # What is pending or left over is dealt with before the process ends, where that is quick; else by the next.
            for work, seconds in (
                (self._committers.drain, LAST_DRAIN_SECONDS),
                (self._committers.settle_listeners, LAST_LISTEN_SECONDS),
                (self._committers.tidy, LAST_TIDY_SECONDS),
                (self._committers.settle_upkeep, LAST_UPKEEP_SECONDS),
                (self._say_what_is_left, LAST_TIDY_SECONDS),
            ):
                with contextlib.suppress(FutureTimeoutError, CancelledError, LakecommitError):
                    self._loop.begin(work()).result(seconds)
        finally:
            # The next run goes on from the store.
            self._loop.close(LAST_LOOP_SECONDS)
            shutil.rmtree(self.directory, ignore_errors=True)

    async def _say_what_is_left(self) -> None:
        for line, location, query in _pending_of(self._committers):
            _log.warning(
                "the process ends while %s; the next start of the query commits it, or: %s",
                *(line, command("recover", location, "--query", query, "--apply")),
            )
        for location, standings in self._committers.listener_status.items():
            for each in (each for each in standings if each.epoch < each.end):
                _log.warning(
                    "the process ends before listener %s was told of epochs %d to %d of query %s in %s%s; it is told "
                    "when the query runs again",
                    *(each.name, each.epoch + 1, each.end, each.query, location),
                    f" ({each.problem})" if each.problem else "",
                )

    def _accept(self) -> None:
        failing = False
        while not self._closed:
            try:
                peer = self._listener.accept()
            except OSError as error:
                if not failing and not self._closed:
                    _log.warning("the committer cannot accept connections: %s; it goes on trying", error)
                failing = True
                # Where no file descriptor is left accept fails at once, and whoever asks is kept waiting in its queue.
                time.sleep(ACCEPT_PAUSE_SECONDS)
                continue
            failing = False
            if self._closed or not self._slots.acquire(blocking=False):
                peer.close()
                continue
            threading.Thread(target=self._serve, args=(peer,), name="lakecommit-request", daemon=True).start()

    def _serve(self, peer: connection.Connection) -> None:
        try:
            with peer:
                _authenticate(peer, self._key, serving=True)
                data = peer.recv_bytes(MAX_MESSAGE_BYTES)
                peer.send_bytes(wire.encode_answer(self._answer(data)))
        except (OSError, EOFError, AuthenticationError) as error:
            _log.warning("a connection to the committer was cut off: %s", type(error).__name__)
        finally:
            self._slots.release()

    def _answer(self, data: bytes) -> wire.Answer:
        try:
            request = wire.decode_request(data)
            # Asked on the connection's own thread: the session may be slow, and the loop serves all tables.
            facts = self._session.facts(request)
            self._publish(request.session, facts.defaults)
            return self.run(self._committers.answer(request, facts))
        except LakecommitError as error:
            return wire.failure(error)
        except (Exception, CancelledError) as error:
            _log.exception("the committer failed")
            return wire.failure(error)

    def _publish(self, session: str, defaults: Mapping[str, str]) -> None:
        """Leaves each session's defaults beside the key, for workers that have to go on without this service."""
        with self._closing:
            if defaults != self._defaults.get(session, {}) and not self._closed:
                self._defaults[session] = dict(defaults)
                path = Path(self.directory, _DEFAULTS)
                aside = path.with_suffix(".new")
                aside.touch(mode=0o600)
                aside.write_text(json.dumps(self._defaults))
                aside.replace(path)


def last_defaults(directory: str, session: str) -> Mapping[str, str]:
    """A session's defaults as the service at `directory` last knew them; none where it left nothing."""
    try:
        found = json.loads(Path(directory, _DEFAULTS).read_text()).get(session, {})
    except (OSError, ValueError):
        return {}
    return {str(key): str(value) for key, value in found.items()}


def ask(directory: str, request: wire.Request) -> wire.Answer:
    """Sends a request to the committer at `directory`. Raises what it raised.

    `Unreachable` comes only while nothing was sent yet. Afterwards a connection that breaks is a `CommitFailed`: the
    committer may have done all of it, so that nobody may do it inline as if nothing had happened.
    """
    try:
        key = Path(directory, _KEY).read_bytes()
        peer = connection.Client(os.path.join(directory, _SOCKET), family="AF_UNIX")
    except OSError as error:
        raise Unreachable(str(error)) from error
    with peer:
        try:
            _authenticate(peer, key, serving=False)
        except (OSError, EOFError, AuthenticationError) as error:
            raise Unreachable(type(error).__name__) from error
        try:
            peer.send_bytes(wire.encode_request(request))
            data = peer.recv_bytes(MAX_MESSAGE_BYTES)
        except (OSError, EOFError) as error:
            raise CommitFailed(
                f"the driver's committer hung up before it answered ({type(error).__name__}), so that it is not known "
                "whether it was done; start the query again, or run a batch write again that has txnAppId and "
                "txnVersion: neither writes twice. Before any other batch write is run again, look into the table"
            ) from error
    answer = wire.decode_answer(data)
    wire.raise_failure(answer)
    return answer


def _authenticate(peer: connection.Connection, key: bytes, *, serving: bool) -> None:
    """Both sides prove that they hold the key; whoever keeps silent for too long is given up."""
    _limit_silence(peer, HANDSHAKE_SECONDS)
    steps = [connection.deliver_challenge, connection.answer_challenge]
    for step in steps if serving else reversed(steps):
        step(peer, key)
    if not serving:
        _limit_silence(peer, 0)


def _limit_silence(peer: connection.Connection, seconds: float) -> None:
    """Makes reads fail that wait longer than this; 0 lifts the limit."""
    with socket.socket(fileno=os.dup(peer.fileno())) as duplicate:
        limit = struct.pack("ll", int(seconds), int(seconds % 1 * 1_000_000))
        duplicate.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)


def _pending_lines(committers: Committers) -> list[str]:
    return [line for line, _, _ in _pending_of(committers)]


def _pending_of(committers: Committers) -> list[tuple[str, str, QueryId]]:
    """What is pending in words, the table and the query."""
    known = [
        (f"{load.epochs} epochs ({load.files} files) of query {query} are pending in {location}", location, query)
        for location, queries in committers.pending.items()
        for query, load in queries.items()
    ]
    unsure = committers.unsure
    return known + [(f"epochs of query {query} may be pending in {place}", place, query) for place, query in unsure]


def _short_directory() -> str | None:
    """A directory whose socket path fits the 107 bytes that Unix allows; None for the default one."""
    return "/tmp" if len(tempfile.gettempdir()) > 60 else None
