"""What each answer of a server, or its absence, comes out as."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from lakecommit.errors import AccessDenied, StoreError
from lakecommit.storage.base import AlreadyThere, Busy, Created, Found, Unknown
from lakecommit.storage.once import Mine, Theirs, create_once
from tests.unit.storage.faulty_s3 import SECRETS, FaultyS3, InstantClock, faulty_s3

# Long enough that a slow machine answers in time, short enough to wait for.
PATIENCE = {"read_timeout": "1s"}


@pytest.fixture
def server() -> Iterator[FaultyS3]:
    with faulty_s3() as running:
        yield running


@pytest.fixture
def clock() -> InstantClock:
    return InstantClock()


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (412, AlreadyThere()),
        ((409, "ConditionalRequestConflict"), Busy("409 ConditionalRequestConflict")),
        ((409, "BlobAlreadyExists"), AlreadyThere()),
        ((429, "SlowDown"), Unknown("429 SlowDown")),
        ((500, "InternalError"), Unknown("500 InternalError")),
        ((503, "SlowDown"), Unknown("503 SlowDown")),
        ((400, "RequestTimeout"), Unknown("400 RequestTimeout")),
        ("reset", Unknown("connection lost")),
        ("hang", Unknown("timed out")),
    ],
    ids=str,
)
def test_create_is_one_request_with_a_value_as_outcome(
    server: FaultyS3, clock: InstantClock, fault: object, outcome: object
) -> None:
    server.faults = [fault]
    store = server.open(clock, **(PATIENCE if fault == "hang" else {}))
    assert asyncio.run(store.create("a", b"x")) == outcome
    assert server.seen == ["PUT"]
    assert clock.slept_s == []


def test_create_without_faults(server: FaultyS3, clock: InstantClock) -> None:
    store = server.open(clock)
    assert isinstance(asyncio.run(store.create("a", b"x")), Created)
    assert asyncio.run(store.create("a", b"y")) == AlreadyThere()
    assert server.objects == {"table/a": b"x"}


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (403, AccessDenied, "403 SomeCode; check the credentials"),
        (401, AccessDenied, "401 SomeCode; check the credentials"),
        ((400, "ExpiredToken"), AccessDenied, "the credentials have expired"),
        ((400, "InvalidRequest"), StoreError, "400 InvalidRequest"),
        ((404, "NoSuchBucket"), StoreError, "does not exist, create it"),
        ((501, "NotImplemented"), StoreError, "501 NotImplemented"),
        (301, StoreError, r"set store\.region"),
    ],
    ids=str,
)
@pytest.mark.parametrize("verb", ["create", "put", "get", "list"])
def test_what_no_retry_can_mend_is_raised_at_once(
    server: FaultyS3, verb: str, fault: object, error: type[StoreError], words: str
) -> None:
    server.faults = [fault]
    with pytest.raises(error, match=words) as raised:
        asyncio.run(call(server.open(InstantClock()), verb))
    assert len(server.seen) == 1
    assert isinstance(raised.value, error)
    assert (type(raised.value) is AccessDenied) == (error is AccessDenied)
    assert_no_secret(raised.value)


@pytest.mark.parametrize("fault", [429, 500, 502, 503, (409, "OperationAborted"), "reset"], ids=str)
@pytest.mark.parametrize("verb", ["put", "get", "size", "get_range", "list", "delete"])
def test_idempotent_requests_are_repeated(server: FaultyS3, clock: InstantClock, verb: str, fault: object) -> None:
    server.objects["table/a"] = b"x"
    server.faults = [fault, fault]
    asyncio.run(call(server.open(clock), verb))
    assert len(server.seen) == 3
    assert len(clock.slept_s) == 2


@pytest.mark.parametrize("verb", ["put", "get"])
def test_a_silent_server_is_asked_again(server: FaultyS3, clock: InstantClock, verb: str) -> None:
    server.objects["table/a"] = b"x"
    server.faults = ["hang"]
    asyncio.run(call(server.open(clock, **PATIENCE), verb))
    assert len(server.seen) > 1


@pytest.mark.parametrize("verb", ["put", "get", "size", "list"])
def test_retries_end_with_a_clear_error(server: FaultyS3, clock: InstantClock, verb: str) -> None:
    server.faults = [(503, "SlowDown")] * 9
    with pytest.raises(StoreError, match=r"503( SlowDown)? after 3 attempts; run it again") as raised:
        asyncio.run(call(server.open(clock), verb))
    assert len(server.seen) == 3
    assert_no_secret(raised.value)


def test_a_torn_response_is_read_again(server: FaultyS3, clock: InstantClock) -> None:
    server.objects["table/a"] = b"whole"
    server.faults = ["torn"]
    found = asyncio.run(server.open(clock).get("a"))
    assert isinstance(found, Found)
    assert found.body == b"whole"


def test_an_unreachable_server(clock: InstantClock) -> None:
    with faulty_s3() as server:
        store = server.open(clock)
    with pytest.raises(StoreError, match="connection refused after 3 attempts"):
        asyncio.run(store.get("a"))
    outcome = asyncio.run(store.create("a", b"x"))
    assert isinstance(outcome, Unknown)


def test_a_listing_goes_on_behind_the_last_page(
    server: FaultyS3, clock: InstantClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakecommit.storage.on_obstore.PAGE_OBJECTS", 4)
    server.page_keys = 4
    server.objects = {f"table/p/{number:02}": b"x" for number in range(10)}
    server.faults = [None, 500, None, "reset"]
    store = server.open(clock)
    names = asyncio.run(paths_of(store, "p"))
    assert names == [f"p/{number:02}" for number in range(10)]
    assert len(clock.slept_s) == 2


def test_a_failed_key_of_a_bulk_delete_leaves_all_unconfirmed(server: FaultyS3, clock: InstantClock) -> None:
    server.objects = {"table/a": b"", "table/b": b""}
    server.faults = ["delete-error"] * 9
    assert asyncio.run(server.open(clock).delete(["a", "b"])) == ("a", "b")
    server.faults = ["delete-error"]
    assert asyncio.run(server.open(clock).delete(["a", "b"])) == ()
    assert server.objects == {}


def test_a_delete_that_never_succeeds_is_unconfirmed(server: FaultyS3, clock: InstantClock) -> None:
    server.faults = [503] * 9
    assert asyncio.run(server.open(clock).delete(["a"])) == ("a",)
    server.faults = [(400, "MalformedXML")]
    assert asyncio.run(server.open(clock).delete(["a"])) == ("a",)
    server.faults = [404]
    assert asyncio.run(server.open(clock).delete(["a"])) == ("a",)


@pytest.mark.parametrize(
    ("fault", "error"), [(403, AccessDenied), ((404, "NoSuchBucket"), StoreError)], ids=["denied", "no bucket"]
)
def test_a_delete_that_cannot_succeed_is_raised(
    server: FaultyS3, clock: InstantClock, fault: object, error: type[StoreError]
) -> None:
    server.faults = [fault]
    with pytest.raises(error) as raised:
        asyncio.run(server.open(clock).delete(["a"]))
    assert_no_secret(raised.value)


@pytest.mark.parametrize("fault", ["lost", "reset", "hang", 500, (409, "ConditionalRequestConflict")], ids=str)
def test_create_once_after_every_kind_of_trouble_is_mine(server: FaultyS3, clock: InstantClock, fault: object) -> None:
    server.faults = [fault]
    store = server.open(clock, **(PATIENCE if fault == "hang" else {}))
    outcome = asyncio.run(create_once(store, "a", b"my uuid", clock=clock, random=lambda: 0.5))
    assert isinstance(outcome, Mine)
    assert server.objects == {"table/a": b"my uuid"}


def test_create_once_meets_another(server: FaultyS3, clock: InstantClock) -> None:
    server.objects["table/a"] = b"their uuid"
    server.faults = ["reset"]
    outcome = asyncio.run(create_once(server.open(clock), "a", b"my uuid", clock=clock, random=lambda: 0.5))
    assert isinstance(outcome, Theirs)
    assert outcome.body == b"their uuid"


def test_nothing_shows_a_secret(server: FaultyS3, clock: InstantClock) -> None:
    store = server.open(clock)
    for text in (repr(store), str(store), store.location):
        assert not any(secret in text for secret in SECRETS)


async def call(store: object, verb: str) -> object:
    if verb == "list":
        return await paths_of(store, "")
    arguments = {"create": ("a", b"x"), "put": ("a", b"x"), "get_range": ("a", 0, 1), "delete": (["a"],)}
    return await getattr(store, verb)(*arguments.get(verb, ("a",)))


async def paths_of(store: object, prefix: str) -> list[str]:
    return [info.path async for page in store.list(prefix) for info in page]


def assert_no_secret(error: BaseException) -> None:
    """Neither in the error nor in what a traceback would print below it."""
    seen: BaseException | None = error
    while seen is not None:
        assert not any(secret in f"{seen!s}{seen!r}" for secret in SECRETS)
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
