"""Delete objects, and know that they are gone."""

from __future__ import annotations

from collections.abc import Sequence

from lakecommit.concurrency.backoff import Backoff
from lakecommit.errors import StoreError
from lakecommit.storage.base import Delete


async def delete_confirmed(store: Delete, paths: Sequence[str], backoff: Backoff | None = None) -> None:
    """After: none of them is there. What is not confirmed is asked for again while `backoff` allows it.

    Raises `StoreError` if it is not known of one.
    """
    left = paths
    while left:
        left = await store.delete(left)
        if left and (backoff is None or not await backoff.again()):
            raise StoreError(f"it is not known whether {left[0]} was deleted; run it again once the store answers")
