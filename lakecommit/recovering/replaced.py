"""Epochs whose version somebody wrote over, found and committed again without a driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext

from lakecommit.clock import Clock
from lakecommit.errors import ContradictoryState
from lakecommit.formats.base import TableState
from lakecommit.model import Epoch, QueryId
from lakecommit.progress.table import ChangeTable, ReadTable, TableView
from lakecommit.recovering.passed import RecoverStore
from lakecommit.releasing.query import QueryCleaner, problem_of
from lakecommit.releasing.replaced import commit_again


async def replaced_epochs(
    store: RecoverStore, table_format: ReadTable, table: TableState, query: QueryId, clock: Clock
) -> tuple[QueryCleaner, Sequence[Epoch]]:
    """The epochs whose version somebody wrote over, and who looked for them. `table` was read before."""
    cleaner = QueryCleaner(store, table_format, query, clock)
    found = await cleaner.survey(table, ask_all=True)
    for problem in problem_of(found):
        raise ContradictoryState(problem)
    return cleaner, found.replaced


async def commit_replaced(
    store: RecoverStore,
    table_format: ChangeTable,
    query: QueryId,
    *,
    clock: Clock,
    new_id: Callable[[], str],
    accepted_table_id: str | None = None,
) -> list[int]:
    """Commits again what was in versions that somebody wrote over; returns the versions that hold it now."""
    view = TableView(table_format)
    await view.look()
    if view.state is None:
        return []
    cleaner, left = await replaced_epochs(store, table_format, view.state, query, clock)
    versions: list[int] = []
    while left:
        again = await commit_again(
            store,
            table_format,
            view,
            nullcontext(),
            cleaner.versions,
            query,
            left,
            clock=clock,
            new_id=new_id,
            accepted_table_id=accepted_table_id,
        )
        if not again:
            break
        versions.append(view.known.version)
        left = [epoch for epoch in left if epoch not in again]
    return versions
