"""The proxy itself: what it does to a request, and that it never alters data."""

from __future__ import annotations

import asyncio
import threading

import pytest

from lakecommit.storage.base import AlreadyThere, Busy, Created, Found, Unknown
from lakecommit.storage.location import open_store
from lakecommit.storage.policy import RetryPolicy

from .faulty_proxy import CHANGES, Chaos, Fault, faulty_proxy

BODY = bytes(range(256)) * 1000


@pytest.fixture
def direct(place_on_s3):
    return place_on_s3.store()


@pytest.fixture
def through(place_on_s3, proxy):
    """Never tries again nor gives up, so that a test sees each fault by itself."""
    options = {**place_on_s3.store_options, "endpoint": proxy.endpoint, "read_timeout": "300s"}
    return open_store(place_on_s3.location, options, policy=RetryPolicy(attempts=1))


def body_of(store, path):
    found = asyncio.run(store.get(path))
    return found.body if isinstance(found, Found) else None


def test_without_faults_everything_comes_through(direct, through):
    assert isinstance(asyncio.run(through.create("a b/ü=1", BODY)), Created)
    assert isinstance(asyncio.run(through.create("a b/ü=1", b"")), AlreadyThere)
    assert body_of(through, "a b/ü=1") == body_of(direct, "a b/ü=1") == BODY
    assert asyncio.run(through.size("a b/ü=1")) == len(BODY)
    assert body_of(through, "nothing") is None


def test_a_lost_answer_comes_after_the_effect(direct, through, proxy):
    rule = proxy.rule("PUT", "x$", Fault.LOST)
    assert isinstance(asyncio.run(through.create("x", BODY)), Unknown)
    assert rule.met.is_set()
    assert body_of(direct, "x") == BODY


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (Fault.RESET, Unknown),
        (Fault.INTERNAL_ERROR, Unknown),
        (Fault.SLOW_DOWN, Unknown),
        (Fault.TOO_MANY, Unknown),
        (Fault.CONFLICT, Busy),
    ],
)
def test_a_refusal_has_no_effect(direct, through, proxy, fault, outcome):
    proxy.rule("PUT", "x$", fault)
    assert isinstance(asyncio.run(through.create("x", BODY)), outcome)
    assert body_of(direct, "x") is None
    assert isinstance(asyncio.run(through.create("x", BODY)), Created), "a rule is for one request"


def test_what_is_never_answered_has_taken_effect(direct, through, proxy, place_on_s3):
    proxy.rule("PUT", "x$", Fault.UNANSWERED)
    options = {**place_on_s3.store_options, "endpoint": proxy.endpoint}
    asked_again = open_store(place_on_s3.location, options, policy=RetryPolicy(answer_ms=200))
    assert isinstance(asyncio.run(asked_again.create("x", BODY)), Unknown)
    assert body_of(direct, "x") == BODY
    assert isinstance(asyncio.run(through.create("x", BODY)), AlreadyThere)


@pytest.mark.parametrize("fault", [Fault.HELD_BEFORE, Fault.HELD_AFTER, Fault.HELD_LATE])
def test_a_held_request_waits(direct, through, proxy, fault):
    rule = proxy.rule("PUT", "x$", fault)
    client = threading.Thread(target=lambda: asyncio.run(through.create("x", BODY)))
    client.start()
    assert rule.met.wait(120)
    assert body_of(direct, "x") == (BODY if fault is Fault.HELD_AFTER else None)
    assert client.is_alive()
    rule.let_go.set()
    client.join(30)
    assert rule.done.wait(120)
    assert body_of(direct, "x") == (None if fault is Fault.HELD_BEFORE else BODY)


def test_chance_is_bounded_and_the_same_for_the_same_seed():
    chaos = Chaos(seed=1, rate=0.5)
    assert [chaos.fault("PUT", "x", n) for n in range(50)] == [chaos.fault("PUT", "x", n) for n in range(50)]
    attempts = [f"0-{number:032x}.avro" for number in (1, 2)]
    assert len({chaos.fault("PUT", name, 1) for name in attempts}) == 1, "attempts have other names in each run"
    seen = {chaos.fault("PUT", "x", number)[0] for number in range(500)}
    assert seen == {None, *CHANGES}


def test_whoever_tries_often_enough_gets_through(local_s3, place_on_s3, direct):
    with faulty_proxy(local_s3.endpoint, Chaos(rate=1.0, in_a_row=2, longest_delay_s=0)) as proxy:
        options = {**place_on_s3.store_options, "endpoint": proxy.endpoint}
        quick = RetryPolicy(attempts=8, first_wait_ms=1)
        store = open_store(place_on_s3.location, options, policy=quick)
        for number in range(10):
            asyncio.run(store.put(f"{number}", BODY))
        assert sum(proxy.met.values()) >= 10
    assert [body_of(direct, f"{number}") for number in range(10)] == [BODY] * 10
