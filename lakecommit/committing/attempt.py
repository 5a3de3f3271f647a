"""The one loop that makes a change a version of the table: for streams, batch writes, fences, repairs and recovery.

What differs between them is what they make of the table as it is. That is asked anew before every try, since the
version that was in the way may have done some of it, or may forbid it. Precondition of a try: the table was read up to
the version that the change follows. Postcondition: the change is in the table exactly once, or nothing of it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from lakecommit.errors import CommitFailed, ConflictingWrite
from lakecommit.formats.base import Committed, Conflict, TableState
from lakecommit.formats.change import Change
from lakecommit.progress.table import TableView
from lakecommit.storage.counting import counted_requests

MAX_ATTEMPTS = 1000


@dataclass(frozen=True, slots=True)
class Landed:
    """A change is in the table, which is `table` then. `attempts` versions were tried, which took `requests`."""

    table: TableState
    attempts: int
    requests: int


async def commit(
    view: TableView,
    turn: AbstractAsyncContextManager[object],
    make: Callable[[], Awaitable[Change | None]],
    seen: Callable[[], None] = lambda: None,
) -> Landed | None:
    """Tries what `make` makes of the table until it is there; None where there is nothing to commit, or nothing left.

    `turn` is held for each try and let go between two of them. `seen` is called within it, after `view` has moved on.
    Raises what `make` raises, `ConflictingWrite` if others have changed what the change rests on, and
    `CommitFailed` where others were always faster.
    """
    requests = 0
    for attempt in range(1, MAX_ATTEMPTS + 1):
        async with turn:
            change = await make()
            if change is None:
                return None
            with counted_requests() as count:
                try:
                    outcome = await view.commit(change)
                finally:
                    requests += count.requests
            seen()
        if isinstance(outcome, Committed):
            return Landed(outcome.state, attempt, requests)
        if isinstance(outcome, Conflict):
            raise ConflictingWrite(
                f"{view.location} was changed while the write ran: {outcome.reason}; nothing was committed: run the "
                "write again"
            )
    raise CommitFailed(
        f"{MAX_ATTEMPTS} versions of {view.location} in a row were taken by other writers; what is staged is kept: "
        "run the query again when the table is less busy"
    )
