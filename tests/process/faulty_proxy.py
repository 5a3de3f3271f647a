"""An HTTP proxy on loopback in front of a local S3 that loses, refuses and delays requests, and never alters data.

    with faulty_proxy(s3.endpoint, Chaos(seed=7, rate=0.2)) as proxy:
        rule = proxy.rule("PUT", r"_delta_log/0+3\\.json", Fault.LOST)
        ...                     # a client that uses proxy.endpoint
        assert rule.met.is_set()

Rules come first, in their order, each for a number of requests; what no rule takes is left to chance.
"""

from __future__ import annotations

import contextlib
import enum
import hashlib
import http.client
import re
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

HELD_SECONDS = 240


class Fault(enum.Enum):
    LOST = "the effect happens, and the connection is closed instead of an answer"
    RESET = "the connection is reset, without effect"
    DELAYED = "the answer comes late"
    INTERNAL_ERROR = (500, "InternalError")
    SLOW_DOWN = (503, "SlowDown")
    TOO_MANY = (429, "TooManyRequests")
    CONFLICT = (409, "ConditionalRequestConflict")
    UNANSWERED = "the effect happens, and no answer ever comes: the client has to give up"
    HELD_BEFORE = "nothing happens until it is let go, and nothing then: the connection is closed"
    HELD_AFTER = "the effect happens, and nothing more until it is let go: the connection is closed"
    HELD_LATE = "nothing happens until it is let go; then the effect happens, whether anybody waits for it or not"


HELD = frozenset({Fault.HELD_BEFORE, Fault.HELD_AFTER, Fault.HELD_LATE})
ANY_REQUEST = (Fault.LOST, Fault.RESET, Fault.DELAYED, Fault.INTERNAL_ERROR, Fault.SLOW_DOWN, Fault.TOO_MANY)
# S3 answers so only to what changes something.
CHANGES = (*ANY_REQUEST, Fault.CONFLICT)
# Half of what goes wrong is never answered, half is refused.
SILENCE_AND_REFUSALS = (*(Fault.UNANSWERED,) * 3, Fault.INTERNAL_ERROR, Fault.SLOW_DOWN, Fault.TOO_MANY)


@dataclass(eq=False)
class Rule:
    """The next `times` requests that match meet `fault`. `met` tells that one did, and that its effect is there.

    `body` is what the newest of them brought.
    """

    method: str
    pattern: re.Pattern[str]
    fault: Fault
    times: int = 1
    body: bytes = b""
    met: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Chaos:
    """Faults by chance, the same for the same seed: a request's fate follows from what it is, not from when it comes.

    `in_a_row` bounds how often one object's requests of a kind fail before one goes through: a client that tries more
    often than that always gets there. `faults` are those to choose from, all by default that fit a request.
    """

    seed: int = 0
    rate: float = 0.0
    in_a_row: int = 3
    longest_delay_s: float = 0.2
    faults: Sequence[Fault] = ()

    def fault(self, method: str, key: str, number: int) -> tuple[Fault | None, float]:
        """What happens to the `number`-th request of this kind, and how long it takes where it is late."""
        # Attempts and queries have names of their own in every run.
        name = _UNIQUE.sub("*", key)
        digest = hashlib.sha256(f"{self.seed} {method} {name} {number}".encode()).digest()
        chance, choice, delay = (int.from_bytes(digest[i : i + 4], "big") / 2**32 for i in (0, 4, 8))
        if chance >= self.rate:
            return None, 0.0
        faults = self.faults or (CHANGES if method in {"PUT", "DELETE"} else ANY_REQUEST)
        return faults[int(choice * len(faults))], delay * self.longest_delay_s


_UNIQUE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}")


class FaultyProxy(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, upstream: str, chaos: Chaos) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        url = urlsplit(upstream)
        self.upstream = (str(url.hostname), int(url.port or 80))
        self._chaos = chaos
        self._lock = threading.Lock()
        self._rules: list[Rule] = []
        self._numbers: Counter[tuple[str, str]] = Counter()
        self._failed_in_a_row: Counter[tuple[str, str]] = Counter()
        self.met: Counter[Fault] = Counter()
        """How often each fault happened."""

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def rule(self, method: str, pattern: str, fault: Fault, times: int = 1) -> Rule:
        """Whatever is asked with `method` for a key in which `pattern` is found meets `fault`, `times` times."""
        rule = Rule(method, re.compile(pattern), fault, times)
        with self._lock:
            self._rules.append(rule)
        return rule

    def fate(self, method: str, key: str) -> tuple[Fault | None, float, Rule | None]:
        with self._lock:
            for rule in self._rules:
                if rule.times and rule.method == method and rule.pattern.search(key):
                    rule.times -= 1
                    self.met[rule.fault] += 1
                    return rule.fault, self._chaos.longest_delay_s, rule
            kind = (method, key)
            self._numbers[kind] += 1
            fault, delay_s = self._chaos.fault(method, key, self._numbers[kind])
            if fault is None or self._failed_in_a_row[kind] >= self._chaos.in_a_row:
                self._failed_in_a_row[kind] = 0
                return None, 0.0, None
            self._failed_in_a_row[kind] += fault is not Fault.DELAYED
            self.met[fault] += 1
            return fault, delay_s, None

    def let_all_go(self) -> None:
        for rule in self._rules:
            rule.let_go.set()

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that are killed in the middle of a request are what this is for."""


@contextlib.contextmanager
def faulty_proxy(upstream: str, chaos: Chaos | None = None) -> Iterator[FaultyProxy]:
    proxy = FaultyProxy(upstream, chaos or Chaos())
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.let_all_go()
        proxy.shutdown()
        proxy.server_close()
        thread.join(timeout=10)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: FaultyProxy

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        key = unquote(urlsplit(self.path).path)
        fault, delay_s, rule = self.server.fate(self.command, key)
        if rule is not None:
            rule.body = body
        if fault in HELD:
            assert rule is not None
            self._held(fault, rule, body)
        elif fault is Fault.LOST:
            self._effect(body)
            self._close()
        elif fault is Fault.UNANSWERED:
            self._effect(body)
            self._wait_for_the_end()
        elif fault is Fault.RESET:
            self._close()
        elif fault is None or fault is Fault.DELAYED:
            answer = self._effect(body)
            time.sleep(delay_s)
            self._answer(*answer)
        else:
            status, code = fault.value
            text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>by chance</Message></Error>"
            self._answer(status, [("Content-Type", "application/xml")], text.encode())
        if rule is not None:
            rule.met.set()
            rule.done.set()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _any  # noqa: N815 (the names that http.server calls)

    def _held(self, fault: Fault, rule: Rule, body: bytes) -> None:
        if fault is Fault.HELD_AFTER:
            self._effect(body)
        rule.met.set()
        rule.let_go.wait(HELD_SECONDS)
        if fault is Fault.HELD_LATE:
            self._effect(body)
        self._close()

    def _wait_for_the_end(self) -> None:
        """Until the client has closed the connection."""
        self.close_connection = True
        self.connection.settimeout(HELD_SECONDS)
        with contextlib.suppress(OSError):
            self.connection.recv(1)

    def _effect(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(*self.server.upstream, timeout=60)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() != "connection":
                    connection.putheader(name, value)
            connection.putheader("Connection", "close")
            connection.endheaders(body or None)
            response = connection.getresponse()
            return response.status, response.getheaders(), response.read()
        finally:
            connection.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        length = str(len(body))
        for name, value in headers:
            if name.lower() == "content-length" and self.command == "HEAD":
                # The length of what a GET would bring.
                length = value
            elif name.lower() not in {"content-length", "connection", "transfer-encoding"}:
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def _close(self) -> None:
        """Resets the connection: whoever waits sees it at once."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
