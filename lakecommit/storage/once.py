"""Create an object exactly once and know whose it is: the ground on which seals and table versions stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lakecommit.clock import Clock
from lakecommit.errors import StoreError
from lakecommit.storage.answers import transfer_ms
from lakecommit.storage.base import AlreadyThere, Busy, Create, Created, Found, Get
from lakecommit.storage.policy import DEFAULT_POLICY, RetryPolicy


class CreateAndGet(Create, Get, Protocol):
    """The two verbs that deciding a creation takes."""


@dataclass(frozen=True, slots=True)
class Mine:
    """The object holds the caller's body."""

    etag: str | None


@dataclass(frozen=True, slots=True)
class Theirs:
    """The object holds another body; it was there first and stays."""

    body: bytes
    etag: str | None


async def create_once(
    store: CreateAndGet,
    path: str,
    body: bytes,
    *,
    clock: Clock,
    random: Callable[[], float],
    policy: RetryPolicy = DEFAULT_POLICY,
) -> Mine | Theirs:
    """Creates `path` with `body` unless it exists, and finds out which of the two happened.

    Before: `body` contains an id that no other writer uses (a UUID). So equal bytes prove that the object is the
    caller's own, also when the response to its creation was lost or a proxy repeated the request.
    After: `Mine` where the stored bytes are `body`, `Theirs` with the bytes that are stored otherwise. Nothing is ever
    overwritten or deleted. An uncontended creation is one request.

    Raises `StoreError` if the outcome is still unknown at the bound of the retries: the object may or may not be
    there, and may even appear later. Whatever rests on it has to be kept.
    """
    backoff = policy.backoff(clock, random, transfer_ms(len(body)))
    while True:
        outcome = await store.create(path, body)
        if isinstance(outcome, Created):
            return Mine(outcome.etag)
        if isinstance(outcome, Busy):
            reason = outcome.reason
        else:
            found = await store.get(path)
            if isinstance(found, Found):
                return Mine(found.etag) if found.body == body else Theirs(found.body, found.etag)
            reason = "deleted by somebody right after" if isinstance(outcome, AlreadyThere) else outcome.reason
        if not await backoff.again():
            raise StoreError(
                f"it is not known whether {path} was created: {reason} ({backoff.attempts} attempts); "
                "nothing was deleted, so run it again once the store answers"
            )
