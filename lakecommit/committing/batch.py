"""The one version of a batch write."""

from __future__ import annotations

from dataclasses import replace

from lakecommit.committing.attempt import Landed, commit
from lakecommit.committing.changes import batch_change
from lakecommit.errors import ContradictoryState, Overtaken, TableMadeAnew
from lakecommit.formats.change import Change, Selection
from lakecommit.formats.plan import BATCH, WritePlan
from lakecommit.model import Pending
from lakecommit.progress.queries import Queries
from lakecommit.progress.settings import TableSettings, Txn
from lakecommit.progress.table import NOT_COMMITTED, ChangeTable, TableView
from lakecommit.restarting.reader import Reader


async def commit_batch(
    queries: Queries,
    reader: Reader,
    table_format: ChangeTable,
    pending: Pending,
    *,
    schema: str,
    settings: TableSettings,
    txn: Txn | None,
) -> Landed:
    """Commits `pending` as the next version, which is known by the write's id; creates a missing table.

    Raises `Overtaken` if its `txnVersion` was reached, or it was fenced off, since the write began: both
    are asked of every state of the table that the version could follow.
    """
    table = queries.table
    # Names of files that versions removed which were in the way.
    compacted: set[str] = set()
    selection: Selection | None = None

    async def make() -> Change | None:
        nonlocal selection
        if table.state is None:
            await reader.look_anew()
        await table.create_if_missing(schema, settings, BATCH)
        if not table.admits(BATCH):
            await table.admit(BATCH)
        await _check(table, reader, pending, settings, txn)
        left = pending
        if not compacted.isdisjoint(file.path.rpartition("/")[2] for file in pending.files):
            # An earlier try was the version after all, others have compacted it, and then it was written over.
            named = await table_format.ever_named_files([file.path for file in pending.files])
            left = replace(pending, files=tuple(file for file in pending.files if file.path not in named))
            if not left.files and txn is None:
                return None
        await table.see_vacuums([left])
        await reader.presence.check_batch(table.known, left)
        if settings.replaces is not None and selection is None:
            # Once, whatever comes between: rows that somebody adds meanwhile were seen by nobody.
            version = settings.replaces.version or 0
            selection = await table_format.select(table.known, version, settings.replaces.scope, pending.files)
        evolves = None
        if settings.replaces is not None and settings.replaces.schema:
            plan = table.plan(schema, settings) if pending.plan is None else WritePlan.from_json(pending.plan)
            evolves = table_format.planned_schema(table.known, plan)
        return batch_change(left, settings, txn, selection, evolves)

    def seen() -> None:
        # The table has moved on; what is remembered of queries must not stay behind.
        queries.see_marks()
        compacted.update(table.known.compacted)

    try:
        landed = await commit(table, reader.turn, make, seen)
    finally:
        if selection is not None:
            selection.close()
    return landed or Landed(table.known, 1, 0)


async def _check(table: TableView, reader: Reader, pending: Pending, settings: TableSettings, txn: Txn | None) -> None:
    if txn is not None and table.has_reached(txn):
        raise Overtaken(
            f"txnVersion {txn.version} of txnAppId {txn.application_id!r} was committed by somebody else while this "
            "write ran: its rows were not added; check that one job at a time uses this txnAppId"
        )
    if table.known.mark(pending.query) is not None:
        raise Overtaken(f"batch write {pending.query} was cleaned up before it was committed: run it again")
    try:
        if settings.replaces is not None and settings.replaces.schema:
            table.check_identity([pending])
        else:
            await reader.check_fit([pending], settings, NOT_COMMITTED)
    except TableMadeAnew as anew:
        raise ContradictoryState(f"{str(anew).partition(';')[0]}; nothing was committed; run the write again") from anew
