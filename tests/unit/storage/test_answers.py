"""How long an answer is waited for, and that whoever never gets one asks again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from obstore.exceptions import GenericError

from lakecommit.storage import location, on_obstore
from lakecommit.storage.answers import AnswerTimes, transfer_ms
from lakecommit.storage.backend import LARGE_BODY_BYTES
from lakecommit.storage.once import Mine, create_once
from lakecommit.storage.policy import DEFAULT_POLICY, RetryPolicy
from tests.lake.virtual_time import VirtualClock, run_virtually
from tests.unit.storage.faulty_s3 import FaultyS3, InstantClock, faulty_s3
from tests.unit.storage.test_outcomes import call

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
        times.missing(seen[-1], 0)
    assert seen == [2000, 4000, 8000, 16000, 30000, 30000]


def test_a_try_waits_longer_than_the_one_before_also_while_others_are_answered_quickly() -> None:
    times = AnswerTimes(DEFAULT_POLICY)
    seen = []
    for attempt in range(1, 9):
        for _ in range(50):
            times.came(1, 0)
        seen.append(times.patience_ms(0, attempt))
        times.missing(seen[-1], 0)
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
        waited_ms = times.patience_ms(0, attempt)
        assert waited_ms <= 8000
        times.missing(waited_ms, 0)
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
        times.missing(seen[-1], 0)
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
    backoff = RetryPolicy(attempts=2, within_ms=10_000).backoff(clock, lambda: 0.0)
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
        backoff = DEFAULT_POLICY.backoff(clock, lambda: 1.0, work_ms)
        while not backoff.is_last(patience_ms := times.patience_ms(work_ms, backoff.attempts)):
            clock.now_ms += patience_ms
            if not await backoff.again():
                return
        clock.now_ms += 300_000

    began_ms = clock.now_ms
    asyncio.run(scenario())
    assert clock.now_ms - began_ms <= 540_000


class SlowWay:
    """A store that takes `bytes_per_s`, or nothing of the first `hung` requests.

    The client gives a large body 300 s, and bears the silence of a smaller one for 30 s.
    """

    def __init__(self, bytes_per_s: float, hung: int = 0) -> None:
        self.objects: dict[str, bytes] = {}
        self.creations = 0
        self._bytes_per_s, self._hung = bytes_per_s, hung

    async def put_async(self, client: object, key: str, body: bytes, **_: object) -> dict[str, str]:
        self.creations += 1
        takes_s = len(body) / self._bytes_per_s if self.creations > self._hung else 10_000.0
        given_s = 300 if len(body) > LARGE_BODY_BYTES else 30
        await asyncio.sleep(min(takes_s, given_s))
        if takes_s > given_s:
            raise GenericError("operation timed out")
        self.objects[key] = body
        return {"e_tag": "e"}

    async def get_async(self, client: object, key: str, **_: object) -> None:
        # Nothing is there before a creation is through.
        raise FileNotFoundError(key)


def created_on(way: SlowWay, monkeypatch: pytest.MonkeyPatch, *bodies_bytes: int) -> list[float]:
    """How many seconds each of the creations took."""
    monkeypatch.setattr(on_obstore.obstore, "put_async", way.put_async)
    monkeypatch.setattr(on_obstore.obstore, "get_async", way.get_async)
    monkeypatch.setattr(on_obstore, "time", SimpleNamespace(monotonic=lambda: asyncio.get_running_loop().time()))
    location._answers.cache_clear()

    async def scenario(clock: VirtualClock) -> list[float]:
        store = location.open_store("s3://bucket/table", {"region": "us-east-1"}, clock=clock, random=lambda: 0.5)
        took = []
        for number, size in enumerate(bodies_bytes):
            began_ms = clock.boot_ms()
            outcome = await create_once(store, str(number), b"x" * size, clock=clock, random=lambda: 0.5)
            assert isinstance(outcome, Mine)
            took.append((clock.boot_ms() - began_ms) / 1000)
        return took

    return run_virtually(scenario)


@pytest.mark.parametrize("size_mib", [1, 3, 12, 15, 20, 30])
def test_a_large_creation_gets_through_a_slow_way_and_the_next_one_at_once(
    monkeypatch: pytest.MonkeyPatch, size_mib: int
) -> None:
    """Each try that is given up ends its upload, so that one of them has to have the time."""
    way = SlowWay(0.125 * MIB)
    created_on(way, monkeypatch, size_mib * MIB)
    again = SlowWay(0.125 * MIB)
    created_on(again, monkeypatch, size_mib * MIB, 1024, size_mib * MIB)
    assert (again.creations - way.creations) == 2, "what was learned is not learned anew"


def test_small_creations_do_not_wait_for_longer_because_the_way_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    way = SlowWay(0.2 * MIB)
    _, small_s = created_on(way, monkeypatch, 20 * MIB, 1024)
    assert small_s < 1
    hung = SlowWay(0.2 * MIB, hung=1)
    (small_s,) = created_on(hung, monkeypatch, 1024)
    assert (hung.creations, small_s < 3) == (2, True)


def test_a_large_creation_that_hangs_is_asked_again_long_before_the_client_gives_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    way = SlowWay(10 * MIB, hung=1)
    (took_s,) = created_on(way, monkeypatch, 20 * MIB)
    assert (way.creations, took_s < 30) == (2, True)


def test_a_body_that_hung_once_on_a_quick_way_is_soon_waited_for_no_longer_than_before() -> None:
    times = AnswerTimes(DEFAULT_POLICY)
    work_ms = transfer_ms(20 * MIB)
    before_ms = times.patience_ms(work_ms)
    times.missing(before_ms, work_ms)
    assert times.patience_ms(0) == 2000, "it says nothing of small ones"
    assert times.patience_ms(work_ms) > 5 * before_ms
    for _ in range(8):
        times.came(500, work_ms)
    assert times.patience_ms(work_ms) == before_ms


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
