"""A wider schema for a table, committed before any row that needs it is written."""

from __future__ import annotations

from collections.abc import Callable

from lakecommit.committing.attempt import Landed, commit
from lakecommit.formats.change import Change, Kind
from lakecommit.progress.queries import Queries
from lakecommit.progress.table import ChangeTable
from lakecommit.restarting.reader import Reader


async def evolve(
    queries: Queries, reader: Reader, table_format: ChangeTable, schema: str, new_id: Callable[[], str]
) -> Landed | None:
    """Has the table take rows of `schema`; None where it does, or where there is none.

    Where others have changed it meanwhile, both are merged. Raises `SchemaMismatch` where no schema takes both.
    """
    change_id = new_id()

    async def make() -> Change | None:
        await reader.look_anew()
        if queries.table.state is None:
            return None
        evolution = table_format.evolution(queries.table.state, schema)
        return None if evolution is None else Change(change_id, Kind.EVOLVE, evolves=evolution)

    return await commit(queries.table, reader.turn, make, queries.see_marks)
