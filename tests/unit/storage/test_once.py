"""The decisions of `create_once`, on a store that answers what a script says."""

from __future__ import annotations

import asyncio

import pytest

from lakecommit.errors import AccessDenied, StoreError
from lakecommit.storage.base import AlreadyThere, Busy, Created, Found, NotModified, Unknown
from lakecommit.storage.once import Mine, Theirs, create_once
from lakecommit.storage.policy import RetryPolicy
from tests.unit.storage.faulty_s3 import InstantClock

BODY = b"3f0e-my-own-uuid"
OTHER = b"77aa-another-uuid"
LOST = Unknown("timed out")


class Scripted:
    """Answers `create` and `get` from one list, in order; an answer of the wrong kind fails the test."""

    def __init__(self, *answers: object) -> None:
        self._answers = list(answers)
        self.calls: list[str] = []

    async def create(self, path: str, body: bytes) -> object:
        assert (path, body) == ("seal", BODY)
        return self._next("create", Created | AlreadyThere | Busy | Unknown | Exception)

    async def get(self, path: str, *, known_etag: str | None = None) -> object:
        assert (path, known_etag) == ("seal", None)
        return self._next("get", Found | NotModified | None | Exception)

    def _next(self, call: str, kinds: object) -> object:
        self.calls.append(call)
        answer = self._answers.pop(0)
        assert isinstance(answer, kinds), f"{call} was not expected"
        if isinstance(answer, Exception):
            raise answer
        return answer

    def spent(self) -> bool:
        return not self._answers


def decide(store: Scripted, attempts: int = 4) -> tuple[Mine | Theirs, InstantClock]:
    clock = InstantClock()
    policy = RetryPolicy(attempts=attempts)
    outcome = asyncio.run(create_once(store, "seal", BODY, clock=clock, random=lambda: 0.5, policy=policy))
    assert store.spent()
    return outcome, clock


def test_an_uncontended_creation_is_one_request() -> None:
    store = Scripted(Created("e1"))
    outcome, clock = decide(store)
    assert outcome == Mine("e1")
    assert store.calls == ["create"]
    assert clock.slept_s == []


@pytest.mark.parametrize("first", [AlreadyThere(), LOST], ids=["refused", "unknown"])
@pytest.mark.parametrize(("body", "outcome"), [(BODY, Mine("e2")), (OTHER, Theirs(OTHER, "e2"))], ids=["own", "other"])
def test_the_bytes_decide_whose_it_is(first: object, body: bytes, outcome: object) -> None:
    store = Scripted(first, Found(body, "e2"))
    assert decide(store)[0] == outcome
    assert store.calls == ["create", "get"]


def test_busy_is_tried_again_without_a_look() -> None:
    store = Scripted(Busy("409"), Busy("409"), Created("e"))
    outcome, clock = decide(store)
    assert outcome == Mine("e")
    assert store.calls == ["create"] * 3
    assert len(clock.slept_s) == 2


@pytest.mark.parametrize("first", [AlreadyThere(), LOST], ids=["gone in between", "did not land"])
def test_what_is_not_there_is_tried_again(first: object) -> None:
    store = Scripted(first, None, Created("e"))
    outcome, clock = decide(store)
    assert outcome == Mine("e")
    assert len(clock.slept_s) == 1


def test_a_request_that_lands_late_is_still_mine() -> None:
    store = Scripted(LOST, None, AlreadyThere(), Found(BODY, "e"))
    assert decide(store)[0] == Mine("e")


def test_another_may_come_between() -> None:
    store = Scripted(LOST, None, AlreadyThere(), Found(OTHER, "e"))
    assert decide(store)[0] == Theirs(OTHER, "e")


@pytest.mark.parametrize("answers", [[Busy("409")], [LOST, None], [AlreadyThere(), None]], ids=str)
def test_it_ends_and_says_that_nothing_is_known(answers: list[object]) -> None:
    store = Scripted(*(answers * 3))
    with pytest.raises(StoreError, match=r"not known whether seal was created.*3 attempts.*nothing was deleted"):
        decide(store, attempts=3)
    assert store.spent()


@pytest.mark.parametrize("answers", [[AccessDenied("no")], [LOST, AccessDenied("no")]], ids=["create", "get"])
def test_errors_pass(answers: list[object]) -> None:
    with pytest.raises(AccessDenied):
        decide(Scripted(*answers))
