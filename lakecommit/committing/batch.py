"""The one version of a batch write."""

from __future__ import annotations

from lakecommit.committing.attempt import Landed, commit
from lakecommit.committing.changes import batch_change
from lakecommit.errors import ContradictoryState, Overtaken, TableMadeAnew
from lakecommit.formats.change import Change
from lakecommit.model import Pending
from lakecommit.progress.queries import Queries
from lakecommit.progress.settings import TableSettings, Txn
from lakecommit.progress.table import NOT_COMMITTED, TableView
from lakecommit.restarting.reader import Reader


async def commit_batch(
    queries: Queries, reader: Reader, pending: Pending, schema: str, settings: TableSettings, txn: Txn | None
) -> Landed:
    """Commits `pending` as the next version, which is known by the write's id; creates a missing table.

    Raises `Overtaken` where its `txnVersion` was reached, or it was fenced off, since the write began: both
    are asked of every state of the table that the version could follow.
    """
    table = queries.table

    async def make() -> Change:
        if table.state is None:
            await reader.look_anew()
        await table.create_if_missing(schema, settings)
        _check(table, pending, settings, txn)
        await table.see_vacuums([pending])
        await reader.presence.check_batch(table.known, pending)
        return batch_change(pending, settings, txn)

    # The table has moved on; what is remembered of queries must not stay behind.
    landed = await commit(table, reader.turn, make, queries.see_marks)
    assert landed is not None, "there is always something to commit"
    return landed


def _check(table: TableView, pending: Pending, settings: TableSettings, txn: Txn | None) -> None:
    if txn is not None and table.has_reached(txn):
        raise Overtaken(
            f"txnVersion {txn.version} of txnAppId {txn.application_id!r} was committed by somebody else while this "
            "write ran: its rows were not added; check that one job at a time uses this txnAppId"
        )
    if table.known.mark(pending.query) is not None:
        raise Overtaken(f"batch write {pending.query} was cleaned up before it was committed: run it again")
    try:
        table.check_plans([pending], settings, NOT_COMMITTED)
    except TableMadeAnew as anew:
        raise ContradictoryState(f"{str(anew).partition(';')[0]}; nothing was committed; run the write again") from anew
