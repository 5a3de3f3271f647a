"""How long an answer is waited for, and that whoever never gets one asks again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from lakecommit.storage.answers import AnswerTimes, transfer_ms
from lakecommit.storage.once import Mine, create_once
from lakecommit.storage.retry import DEFAULT_POLICY, Backoff, RetryPolicy
from tests.storage.faulty_s3 import FaultyS3, InstantClock, faulty_s3
from tests.storage.test_outcomes import call

MIB = 1024 * 1024
HASTY = RetryPolicy(attempts=6, answer_ms=300)


@pytest.fixture
def server() -> Iterator[FaultyS3]:
    with faulty_s3() as running:
        yield running


def test_a_small_request_is_asked_again_after_two_seconds_and_then_after_twice_as_long() -> None:
    times = AnswerTimes(DEFAULT_POLICY)
    seen = []
    for attempt in range(1, 7):
        seen.append(times.patience_ms(0, attempt))
        times.missing(attempt)
    assert seen == [2000, 4000, 8000, 16000, 30000, 30000]


def test_a_try_waits_longer_than_the_one_before_also_while_others_are_answered_quickly() -> None:
    times = AnswerTimes(DEFAULT_POLICY)
    seen = []
    for attempt in range(1, 9):
        for _ in range(50):
            times.came(1, 0)
        seen.append(times.patience_ms(0, attempt))
        times.missing(attempt)
    assert seen == [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000]


def test_a_body_has_the_time_that_a_slow_way_takes() -> None:
    times = AnswerTimes(DEFAULT_POLICY)
    assert times.patience_ms(transfer_ms(10 * 1024)) == 2009
    assert [times.patience_ms(transfer_ms(16 * MIB), attempt) for attempt in (1, 2)] == [18_000, 34_000]


def test_a_store_that_answers_quickly_is_asked_again_sooner_but_not_at_once() -> None:
    times = AnswerTimes(DEFAULT_POLICY)
    for _ in range(10):
        times.came(200, 0)
    assert times.patience_ms(0) == 800
    for _ in range(30):
        times.came(1, 0)
    assert times.patience_ms(0) == 500


def test_a_store_that_is_always_slow_is_not_asked_twice_for_ever() -> None:
    """Each answer takes eight seconds: the first comes to the third or fourth try, and every later one to the first."""
    times = AnswerTimes(DEFAULT_POLICY)
    for attempt in (1, 2, 3):
        assert times.patience_ms(0, attempt) <= 8000
        times.missing(attempt)
    assert times.patience_ms(0, 4) > 8000
    for _ in range(100):
        times.came(8000, 0)
        assert times.patience_ms(0) == 30_000


def test_an_answer_that_never_came_makes_the_next_one_wait_longer_also_where_nobody_counts_the_tries() -> None:
    """A creation is one request for the store; whoever repeats it comes anew."""
    times = AnswerTimes(DEFAULT_POLICY)
    seen = []
    for _ in range(6):
        seen.append(times.patience_ms(0))
        times.missing()
    assert seen == [2000, 4000, 8000, 16000, 30000, 30000]


def test_one_slow_answer_is_forgotten_after_a_few_quick_ones() -> None:
    times = AnswerTimes(DEFAULT_POLICY)
    times.came(3000, 0)
    assert times.patience_ms(0) == 12_000
    for _ in range(10):
        times.came(30, 0)
    assert times.patience_ms(0) == 500


def test_a_large_body_that_takes_its_time_is_no_slow_store() -> None:
    times = AnswerTimes(DEFAULT_POLICY)
    work_ms = transfer_ms(64 * MIB)
    times.came(20_000, work_ms)
    assert times.patience_ms(0) <= 2000
    assert times.patience_ms(work_ms) <= 66_000


def test_the_last_try_has_all_the_time_there_is() -> None:
    clock = InstantClock()
    backoff = Backoff(RetryPolicy(attempts=2, within_ms=10_000), clock, lambda: 0.0)
    assert not backoff.is_last(3000)
    assert backoff.is_last(10_001), "nothing could follow it"
    clock.now_ms += 8000
    assert backoff.is_last(3000)
    asyncio.run(backoff.again())
    assert backoff.is_last(0), "it is the last by number"


@pytest.mark.parametrize("size_mib", [0, 1, 64, 128, 256, 1024])
def test_all_tries_of_an_upload_stay_below_its_deadline(size_mib: int) -> None:
    """The last one begins in time for the five minutes that a client gives it at most."""
    clock, work_ms = InstantClock(), transfer_ms(size_mib * MIB)
    times = AnswerTimes(DEFAULT_POLICY)

    async def scenario() -> None:
        backoff = Backoff(DEFAULT_POLICY, clock, lambda: 1.0, work_ms)
        while not backoff.is_last(patience_ms := times.patience_ms(work_ms, backoff.attempts)):
            clock.now_ms += patience_ms
            if not await backoff.again():
                return
        clock.now_ms += 300_000

    began_ms = clock.now_ms
    asyncio.run(scenario())
    assert clock.now_ms - began_ms <= 540_000


@pytest.fixture
def silent_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client by itself bears silence for longer than a test lasts."""
    monkeypatch.setattr("lakecommit.storage.location.SILENCE_TIMEOUT", "600s")


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("silent_client")
@pytest.mark.parametrize("verb", ["put", "get", "size", "get_range", "list", "delete"])
def test_a_request_that_is_never_answered_is_asked_again_on_another_connection(server: FaultyS3, verb: str) -> None:
    """The server holds the first one for as long as the test lasts, and notices that nobody waits for it."""
    server.objects["table/a"] = b"x"
    server.faults = ["silent"]
    asyncio.run(call(server.open(InstantClock(), policy=HASTY), verb))
    assert len(server.seen) >= 2
    assert server.left.wait(30), "the connection was closed, not kept for the next request"
    assert len(set(server.peers)) >= 2


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("silent_client")
@pytest.mark.parametrize("fault", ["silent", "silent-after"])
def test_a_creation_that_is_never_answered_is_recognised(server: FaultyS3, fault: str) -> None:
    clock = InstantClock()
    server.faults = [fault]
    store = server.open(clock, policy=HASTY)
    assert isinstance(asyncio.run(create_once(store, "a", b"my uuid", clock=clock, random=lambda: 0.5)), Mine)
    assert server.objects == {"table/a": b"my uuid"}


@pytest.mark.parametrize("verb", ["put", "get", "size", "get_range", "list", "delete", "create"])
def test_a_store_that_takes_longer_than_the_first_patience_still_works(server: FaultyS3, verb: str) -> None:
    clock = InstantClock()
    server.objects["table/a"] = b"x"
    server.slow_s = 0.5
    store = server.open(clock, policy=RetryPolicy(attempts=6, answer_ms=100))
    if verb == "create":
        assert isinstance(asyncio.run(create_once(store, "b", b"my uuid", clock=clock, random=lambda: 0.5)), Mine)
    else:
        asyncio.run(call(store, verb))


def test_who_says_how_long_to_wait_is_believed(server: FaultyS3) -> None:
    """The server takes longer than lakecommit would wait by itself."""
    server.slow_s = 0.5
    store = server.open(InstantClock(), policy=RetryPolicy(attempts=6, answer_ms=10), read_timeout="60s")
    asyncio.run(store.put("a", b"x"))
    assert server.seen == ["PUT"]


def test_each_page_of_a_listing_has_tries_of_its_own(server: FaultyS3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakecommit.storage.on_obstore.PAGE_OBJECTS", 2)
    server.page_keys = 2
    server.objects = {f"table/p/{number:02}": b"x" for number in range(10)}
    server.faults = [500, None] * 5
    store = server.open(InstantClock(), policy=RetryPolicy(attempts=3))

    async def paths() -> list[str]:
        return [info.path async for page in store.list("p") for info in page]

    assert asyncio.run(paths()) == [f"p/{number:02}" for number in range(10)]
