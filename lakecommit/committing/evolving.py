"""A wider schema for a table, committed before any row that needs it is written."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from lakecommit.committing.attempt import Landed, commit
from lakecommit.formats.change import Change, Kind
from lakecommit.progress.queries import Queries
from lakecommit.progress.settings import TableSettings
from lakecommit.progress.table import ChangeTable
from lakecommit.restarting.reader import Reader

_log = logging.getLogger("lakecommit.committing")


async def evolve(
    queries: Queries, reader: Reader, table_format: ChangeTable, schema: str, new_id: Callable[[], str]
) -> Landed | None:
    """Has the table take rows of `schema`; None where it does, or where there is none.

    Where others have changed it meanwhile, both are merged. Raises `SchemaMismatch` if no schema takes both.
    """
    change_id = new_id()

    async def make() -> Change | None:
        await reader.look_anew()
        if queries.table.state is None:
            return None
        evolution = table_format.evolution(queries.table.state, schema)
        return None if evolution is None else Change(change_id, Kind.EVOLVE, evolves=evolution)

    landed = await commit(queries.table, reader.turn, make, queries.see_marks)
    if landed is not None:
        _log.info("version %d of %s has a wider schema", landed.table.version, table_format.location)
    return landed


def resting_on(landed: Landed | None, settings: TableSettings) -> TableSettings:
    """The settings of a write that has made a wider schema: where nobody came in between, its rows rest on that."""
    replaces = settings.replaces
    if landed is None or replaces is None or replaces.version != landed.table.version - 1:
        return settings
    return replace(settings, replaces=replace(replaces, version=landed.table.version))
