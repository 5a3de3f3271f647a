"""The server process behind `LocalS3`: moto's S3 in a threaded HTTP/1.1 server, with counting and delay around it.

Prints its port when it listens, and ends when its standard input does.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qs

CONTROL_PATH = "/_local_s3"
REQUESTS_KEPT = 10_000

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]


class CountedRequests:
    """WSGI middleware: counts, waits, then lets moto answer. The control path is neither counted nor delayed."""

    def __init__(self, application: Application, delay_ms: float, sleep: Callable[[float], None] = time.sleep) -> None:
        self._application = application
        self._lock = threading.Lock()
        self._delay_ms = delay_ms
        self._slow: dict[str, float] = {}
        self._sleep = sleep
        self._counts: Counter[str] = Counter()
        self._requests: deque[tuple[str, str]] = deque(maxlen=REQUESTS_KEPT)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if environ.get("PATH_INFO") == CONTROL_PATH:
            return self._control(environ, start_response)
        kind, key = kind_and_key(environ)
        with self._lock:
            self._counts[kind] += 1
            self._requests.append((kind, key))
            delay_ms = self._delay_ms + sum(more for part, more in self._slow.items() if part in key)
        if delay_ms:
            self._sleep(delay_ms / 1000)
        return self._application(environ, start_response)

    def _control(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        change = {}
        if environ["REQUEST_METHOD"] == "POST":
            change = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        with self._lock:
            if "delay_ms" in change:
                self._delay_ms = float(change["delay_ms"])
            if "slow" in change:
                self._slow = {str(part): float(more) for part, more in change["slow"].items()}
            if change.get("reset"):
                self._counts.clear()
                self._requests.clear()
            state = {"counts": dict(self._counts), "requests": list(self._requests)}
        body = json.dumps(state).encode()
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]


def kind_and_key(environ: Environ) -> tuple[str, str]:
    """What a path-style S3 request is: its kind, and the key below the bucket (a listing's prefix)."""
    path = str(environ.get("PATH_INFO", "")).encode("latin-1").decode("utf-8", "replace")
    _, _, key = path.lstrip("/").partition("/")
    query = parse_qs(str(environ.get("QUERY_STRING", "")), keep_blank_values=True)
    method = str(environ["REQUEST_METHOD"])
    if method == "GET" and not key:
        return "LIST", query.get("prefix", [""])[0]
    if method == "POST" and "delete" in query:
        return "BULK-DELETE", key
    if not key:
        return "BUCKET", ""
    return method, key


def main() -> None:
    from moto.moto_server.werkzeug_app import (  # noqa: PLC0415
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server  # noqa: PLC0415

    class Handler(MotoRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body in one packet and at once: otherwise a response waits 40 ms for a delayed acknowledgement.
        disable_nagle_algorithm = True
        wbufsize = -1

        def handle_expect_100(self) -> bool:
            # A client that asks whether it may send its body waits for this, for a second or more if it stays buffered.
            going_on = super().handle_expect_100()
            self.wfile.flush()
            return going_on

        def log(self, type: str, message: str, *args: Any) -> None:
            pass

    application = CountedRequests(DomainDispatcherApplication(create_backend_app), float(sys.argv[1]))
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.port, flush=True)
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
