"""A very small S3 over HTTP whose next answers a test can script, and a clock that never waits."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from lakecommit.storage.base import Store
from lakecommit.storage.location import open_store
from lakecommit.storage.policy import RetryPolicy

ACCESS_KEY_ID = "AKIDSECRETKEYID"
SECRET_ACCESS_KEY = "s3cr3tACCESSkey"
SESSION_TOKEN = "t0kenOFsession"
SECRETS = (ACCESS_KEY_ID, SECRET_ACCESS_KEY, SESSION_TOKEN)


class InstantClock:
    """Sleeping moves the time and takes none."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000.0
        self.slept_s: list[float] = []

    def wall_ms(self) -> int:
        return int(self.now_ms)

    def boot_ms(self) -> int:
        return int(self.now_ms)

    async def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.now_ms += seconds * 1000


class FaultyS3(ThreadingHTTPServer):
    """Answers like S3 unless `faults` has something to say about the next request.

    A fault is a status, a (status, error code), or one of: "reset", "hang", "lost" (the effect happens, the response
    does not), "torn" (the body ends early), "delete-error" (a bulk delete whose last key fails), "silent" (nothing
    ever happens, until the client leaves), "silent-after" (the same after the effect).
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.faults: list[object] = []
        self.seen: list[str] = []
        self.peers: list[tuple[str, int]] = []
        self.page_keys = 1000
        self.slow_s = 0.0
        self.left = threading.Event()
        """A client has closed the connection on which it was told nothing."""
        self.released = threading.Event()

    def open(self, clock: InstantClock, *, policy: RetryPolicy | None = None, **options: str) -> Store:
        known = {
            "endpoint": f"http://127.0.0.1:{self.server_port}",
            "access_key_id": ACCESS_KEY_ID,
            "secret_access_key": SECRET_ACCESS_KEY,
            "session_token": SESSION_TOKEN,
            "region": "us-east-1",
        }
        return open_store(
            "s3://bucket/table",
            {**known, **options},
            clock=clock,
            random=lambda: 0.5,
            policy=policy or RetryPolicy(attempts=3),
        )

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that went away are part of the tests."""


@contextlib.contextmanager
def faulty_s3() -> Iterator[FaultyS3]:
    server = FaultyS3()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: FaultyS3

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append(self.command)
        self.server.peers.append(self.client_address)
        if self.server.slow_s:
            time.sleep(self.server.slow_s)
        fault = self.server.faults.pop(0) if self.server.faults else None
        if isinstance(fault, int):
            self._answer(fault, _error("SomeCode"))
        elif isinstance(fault, tuple):
            self._answer(fault[0], _error(fault[1]))
        elif fault == "reset":
            self._reset()
        elif fault == "hang":
            self.server.released.wait(30)
            self._reset()
        elif fault in ("silent", "silent-after"):
            if fault == "silent-after":
                self._effect(body, "silent")
            self._wait_for_the_end()
        elif fault == "lost":
            self._effect(body, "lost")
            self._reset()
        else:
            self._effect(body, fault)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _any  # noqa: N815

    def _effect(self, body: bytes, fault: object) -> None:
        url = urlsplit(self.path)
        query = parse_qs(url.query, keep_blank_values=True)
        key = unquote(url.path).removeprefix("/bucket").lstrip("/")
        objects = self.server.objects
        if self.command == "PUT":
            if self.headers.get("If-None-Match") == "*" and key in objects:
                answer = (412, _error("PreconditionFailed"))
            else:
                objects[key] = body
                answer = (200, b"")
        elif self.command == "POST" and "delete" in query:
            keys = re.findall(r"<Key>([^<]*)</Key>", body.decode())
            failed = keys[-1:] if fault == "delete-error" else []
            for each in keys:
                if each not in failed:
                    objects.pop(each, None)
            answer = (200, _deleted([each for each in keys if each not in failed], failed))
        elif not key:
            answer = (200, self._listed(query))
        elif key in objects and (wanted := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")):
            answer = (206, objects[key][int(wanted[1]) : int(wanted[2]) + 1])
        elif key in objects:
            answer = (200, objects[key])
        else:
            answer = (404, _error("NoSuchKey"))
        if fault is None or fault == "delete-error":
            self._answer(*answer)
        elif fault == "torn":
            self._answer(answer[0], answer[1], torn=True)

    def _listed(self, query: dict[str, list[str]]) -> bytes:
        prefix = query.get("prefix", [""])[0]
        after = query.get("continuation-token", query.get("start-after", [""]))[0]
        keys = sorted(key for key in self.server.objects if key.startswith(prefix) and key > after)
        page, rest = keys[: self.server.page_keys], keys[self.server.page_keys :]
        more = f"<NextContinuationToken>{page[-1]}</NextContinuationToken>" if rest else ""
        items = "".join(
            f"<Contents><Key>{key}</Key><Size>1</Size><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
            "<ETag>&quot;e&quot;</ETag></Contents>"
            for key in page
        )
        return (
            f"<ListBucketResult><IsTruncated>{str(bool(rest)).lower()}</IsTruncated>{items}{more}</ListBucketResult>"
        ).encode()

    def _answer(self, status: int, body: bytes, *, torn: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) + (10 if torn else 0)))
        if status == 206:
            self.send_header("Content-Range", f"bytes 0-{len(body) - 1}/{len(body)}")
        self.send_header("ETag", f'"{abs(hash(body))}"')
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.close_connection = torn

    def _wait_for_the_end(self) -> None:
        self.close_connection = True
        self.connection.settimeout(0.05)
        while not self.server.released.is_set():
            try:
                if not self.connection.recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        self.server.left.set()

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()


def _error(code: object) -> bytes:
    """An error as S3 writes it; real ones repeat the access key id, too."""
    return (
        f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message>"
        f"<AWSAccessKeyId>{ACCESS_KEY_ID}</AWSAccessKeyId><Token>{SESSION_TOKEN}</Token></Error>"
    ).encode()


def _deleted(done: list[str], failed: list[str]) -> bytes:
    good = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in done)
    bad = "".join(f"<Error><Key>{key}</Key><Code>InternalError</Code><Message>no</Message></Error>" for key in failed)
    return f"<DeleteResult>{good}{bad}</DeleteResult>".encode()
