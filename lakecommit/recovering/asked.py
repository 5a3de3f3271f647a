"""What a recovery is asked about: a table that is there, and queries that have state in it. Else it is refused."""

from __future__ import annotations

from lakecommit.commands import command
from lakecommit.errors import InvalidInput
from lakecommit.formats.base import TableState
from lakecommit.model import QueryId, is_batch
from lakecommit.progress.table import ReadTable
from lakecommit.state.stored import stored_queries
from lakecommit.storage.base import Store


async def open_table(table_format: ReadTable, accepted_table_id: str | None) -> TableState:
    """The table as it is now, whose id is `accepted_table_id` where one is given."""
    found, location = await table_format.open(), table_format.location
    if found is None:
        raise InvalidInput(
            f"there is no table at {location}; check the location. Where the table is gone, what a query has staged "
            f"can be saved: {command('recover', location)} --query ID --export DIR"
        )
    if accepted_table_id not in (None, found.table_id):
        raise InvalidInput(f"--accept-table-id is not the id of this table, which is {found.table_id}; correct it")
    return found


async def find_queries(store: Store, only: QueryId | None) -> list[QueryId]:
    """The streaming queries that have state here; just `only` where it is given, which must be one of them."""
    if only is not None and is_batch(only):
        raise InvalidInput(
            f"{only} is a batch write: whoever ran it saw it fail and runs it again, so nobody else may commit it; "
            f"to delete what it left: {command('clean', store.location)}"
        )
    streams = [query async for query in stored_queries(store) if not is_batch(query)]
    if only is None:
        return streams
    if only not in streams:
        known = ", ".join(streams[:20]) or "none"
        raise InvalidInput(f"query {only} has no state at {store.location}; queries that have: {known}")
    return [only]
