"""The committer's door: who may come in, what is cut off, and that it goes on afterwards."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import stat
import struct
import threading
from dataclasses import replace
from multiprocessing import AuthenticationError, connection
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

from lakecommit.errors import CommitFailed, CorruptState, SchemaMismatch
from lakecommit.model import Epoch
from lakecommit.service import server as service_module
from lakecommit.service.dispatch import Facts
from lakecommit.service.server import CommitterService, Unreachable, ask, last_defaults, wire
from lakecommit.service.wire import Answer, Request, Verb
from lakecommit.state.stored import ManifestMissing

REQUEST = Request(Verb.COMMIT_EPOCH, {"path": "x", "store.secret_access_key": "hush"}, "{}", True, "", 7, (b"r", b""))


class Scripted:
    """Stands where the committers do."""

    def __init__(self):
        self.requests = []
        self.outcome = Answer(version=3)
        self.tidied = threading.Semaphore(0)

    def facts(self, request):
        return Facts(defaults={"compression": "none"})

    async def answer(self, request, facts):
        self.requests.append(request)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    async def drain(self):
        pass

    async def settle_listeners(self):
        pass

    pending: ClassVar = {}
    unsure: ClassVar = ()
    listener_status: ClassVar = {}

    async def settle_upkeep(self):
        pass

    async def tidy(self):
        self.tidied.release()


@pytest.fixture
def committers():
    return Scripted()


@pytest.fixture
def service(committers, monkeypatch):
    monkeypatch.setattr(service_module, "HANDSHAKE_SECONDS", 0.5)
    running = CommitterService(committers, committers)
    yield running
    running.close()


def raw(service) -> socket.socket:
    peer = socket.socket(socket.AF_UNIX)
    # Connecting waits for room in the service's queue; only reading has a limit.
    peer.connect(os.path.join(service.directory, "committer.sock"))
    peer.settimeout(120)
    return peer


def assert_alive(service):
    assert ask(service.directory, REQUEST) == Answer(version=3)


def read_until_closed(peer: socket.socket) -> None:
    """Returns once the service has hung up; the socket's own time limit fails the test otherwise."""
    try:
        while peer.recv(4096):
            pass
    except ConnectionResetError:
        pass


def test_a_request_arrives_whole_and_its_answer_comes_back(service, committers):
    committers.outcome = Answer(plan="p", done={"q": 4}, skip=True, defaults={"compression": "y"}, version=None)
    assert ask(service.directory, REQUEST) == committers.outcome
    assert committers.requests == [REQUEST]


def test_an_error_arrives_as_the_class_that_was_raised(service, committers):
    committers.outcome = SchemaMismatch("column a is missing")
    with pytest.raises(SchemaMismatch, match="column a is missing"):
        ask(service.directory, REQUEST)
    committers.outcome = ZeroDivisionError("division by zero")
    with pytest.raises(CommitFailed, match="ZeroDivisionError"):
        ask(service.directory, REQUEST)


def test_the_directory_and_the_key_are_private(service):
    assert stat.S_IMODE(os.stat(service.directory).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(Path(service.directory, "committer.key")).st_mode) == 0o600


def test_a_wrong_key_is_refused(service, committers):
    with pytest.raises((AuthenticationError, EOFError, OSError)):
        connection.Client(os.path.join(service.directory, "committer.sock"), family="AF_UNIX", authkey=b"wrong")
    assert committers.requests == []
    assert_alive(service)


def test_garbage_is_cut_off(service, committers):
    with raw(service) as peer:
        peer.sendall(b"GET / HTTP/1.1\r\n\r\n" * 50)
        read_until_closed(peer)
    assert committers.requests == []
    assert_alive(service)


def test_an_authenticated_peer_that_sends_no_record_gets_an_error(service, committers):
    key = Path(service.directory, "committer.key").read_bytes()
    with connection.Client(os.path.join(service.directory, "committer.sock"), family="AF_UNIX", authkey=key) as peer:
        peer.send_bytes(b"not avro")
        with pytest.raises(Exception, match="not an Avro file"):
            wire.raise_failure(wire.decode_answer(peer.recv_bytes()))
    assert_alive(service)


def test_an_endless_message_is_cut_off_by_its_announced_length(service, committers):
    key = Path(service.directory, "committer.key").read_bytes()
    with connection.Client(os.path.join(service.directory, "committer.sock"), family="AF_UNIX", authkey=key) as peer:
        os.write(peer.fileno(), struct.pack("!iQ", -1, 1 << 50))
        with pytest.raises((EOFError, OSError)):
            peer.recv_bytes()
    assert committers.requests == []
    assert_alive(service)


def test_peers_that_say_nothing_hold_nobody_up_and_are_cut_off(service):
    silent = [raw(service) for _ in range(10)]
    assert_alive(service)
    for peer in silent:
        read_until_closed(peer)
        peer.close()


def test_more_connections_than_there_are_slots_are_turned_away(service, monkeypatch):
    crowded = [raw(service) for _ in range(service_module.MAX_CONNECTIONS + 5)]
    for peer in crowded:
        read_until_closed(peer)
        peer.close()
    assert_alive(service)


def test_where_no_connection_can_be_accepted_it_pauses_and_says_so_once(service, monkeypatch, caplog):
    real, failures, pauses = service._listener.accept, 5, []

    def accept():
        if len(pauses) < failures:
            raise OSError(errno.EMFILE, "Too many open files")
        return real()

    monkeypatch.setattr(service_module, "time", SimpleNamespace(sleep=pauses.append))
    with caplog.at_level(logging.WARNING, "lakecommit.service"):
        monkeypatch.setattr(service._listener, "accept", accept)
        raw(service).close()
        assert_alive(service)
    assert pauses == [service_module.ACCEPT_PAUSE_SECONDS] * failures
    assert [record.getMessage() for record in caplog.records if "accept" in record.getMessage()] == [
        "the committer cannot accept connections: [Errno 24] Too many open files; it goes on trying"
    ]


@pytest.mark.parametrize("verb", list(Verb))
def test_a_connection_that_is_cut_before_the_answer_says_what_is_not_known(service, committers, monkeypatch, verb):
    def cut(peer):
        with peer:
            service_module._authenticate(peer, service._key, serving=True)
        service._slots.release()

    monkeypatch.setattr(service, "_serve", cut)
    with pytest.raises(CommitFailed, match="not known whether it was done; start the query again") as raised:
        ask(service.directory, replace(REQUEST, verb=verb))
    assert isinstance(raised.value.__cause__, (OSError, EOFError))


def test_requests_are_served_side_by_side(service, committers):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(ask(service.directory, REQUEST))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [Answer(version=3)] * 8


def test_after_closing_nobody_answers_and_nothing_is_left(service):
    service.close()
    assert not os.path.exists(service.directory)
    with pytest.raises(Unreachable):
        ask(service.directory, REQUEST)
    with pytest.raises(Unreachable, match="has ended"):
        service.run(asyncio.sleep(0))


def test_closing_leaves_nobody_waiting(service, committers):
    begun = threading.Event()

    async def never(request, facts):
        begun.set()
        await asyncio.sleep(3600)

    committers.answer = never
    raised = []

    def wait():
        try:
            ask(service.directory, REQUEST)
        except CommitFailed as error:
            raised.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    assert begun.wait(10)
    service.close()
    thread.join(10)
    assert raised


def test_each_sessions_defaults_stay_for_workers_that_go_on_alone(service, committers):
    assert last_defaults(service.directory, "one") == {}
    for session in ("one", "two"):
        committers.facts = lambda request: Facts(defaults={"compression": f"of {request.session}"})
        ask(service.directory, replace(REQUEST, session=session))
    assert last_defaults(service.directory, "one") == {"compression": "of one"}
    assert last_defaults(service.directory, "two") == {"compression": "of two"}
    assert stat.S_IMODE(os.stat(Path(service.directory, "defaults.json")).st_mode) == 0o600


def test_neither_requests_nor_answers_show_options():
    assert "hush" not in repr(REQUEST)
    assert "hush" not in repr(Answer(defaults={"store.secret_access_key": "hush"}))


def test_the_service_cleans_up_from_time_to_time_and_once_more_at_its_end(committers, monkeypatch):
    monkeypatch.setattr(service_module, "TIDY_SECONDS", 0.01)
    running = CommitterService(committers, committers)
    assert committers.tidied.acquire(timeout=120)
    assert committers.tidied.acquire(timeout=120), "it goes on"
    monkeypatch.setattr(service_module, "TIDY_SECONDS", 3600)
    running.close()
    while committers.tidied.acquire(blocking=False):
        pass
    quiet = CommitterService(committers, committers)
    assert not committers.tidied.acquire(blocking=False)
    quiet.close()
    assert committers.tidied.acquire(blocking=False), "what the last write left goes before the process ends"


def test_an_error_that_is_declared_elsewhere_reaches_the_worker_as_what_it_is():
    missing = ManifestMissing("m.avro", Epoch(3))
    with pytest.raises(CorruptState, match=r"^manifest m\.avro is missing"):
        wire.raise_failure(wire.failure(missing))
