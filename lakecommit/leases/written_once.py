"""Objects whose names nobody else uses, and that are there for certain, from a moment that lies behind."""

from __future__ import annotations

from collections.abc import Callable

from lakecommit.clock import Clock
from lakecommit.errors import StoreError
from lakecommit.storage.base import AlreadyThere, Create, Created
from lakecommit.storage.policy import DEFAULT_POLICY, RetryPolicy


async def create_anew(
    store: Create,
    path_of: Callable[[str], str],
    body: bytes,
    *,
    new_id: Callable[[], str],
    clock: Clock,
    random: Callable[[], float],
    policy: RetryPolicy = DEFAULT_POLICY,
) -> str:
    """Creates an object at `path_of` an id that is new, and returns the id.

    Each request has an id of its own and is made once. So one that takes effect late brings nothing back that was
    deleted meanwhile, and moves no object's time: it leaves an object more, which means nothing to anybody. Raises
    `StoreError` where none is confirmed within the bound of the retries; any of them may be there then.
    """
    backoff = policy.backoff(clock, random)
    while True:
        unique = new_id()
        path = path_of(unique)
        outcome = await store.create(path, body)
        # Nobody else makes up this name: what is there already is this request, which somebody on the way repeated.
        if isinstance(outcome, Created | AlreadyThere):
            return unique
        if not await backoff.again():
            raise StoreError(
                f"it is not known whether {path} was created: {outcome.reason} ({backoff.attempts} attempts); "
                "run it again once the store answers"
            )
