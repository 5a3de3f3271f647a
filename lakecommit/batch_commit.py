"""The one version of a batch write."""

from __future__ import annotations

from typing import Any

from lakecommit.drafts import TableSettings, Txn, batch_draft
from lakecommit.errors import CommitFailed, ContradictoryState, Overtaken, TableMadeAnew
from lakecommit.formats.base import Committed, TableFormat
from lakecommit.model import Pending
from lakecommit.presence import Presence
from lakecommit.table_view import NOT_COMMITTED, TableView

MAX_COMMIT_ATTEMPTS = 1000


async def commit_batch(
    table: TableView,
    table_format: TableFormat[Any],
    presence: Presence,
    pending: Pending,
    settings: TableSettings,
    txn: Txn | None,
) -> int:
    """Commits `pending` as the next version, whose number is returned; it is known by its commit user as `txnId`.

    Before: the table is there. Raises `Overtaken` where its `txnVersion` was reached, or its commit user fenced off,
    since the write began: both are asked of every state of the table that the version could follow.
    """
    for _ in range(MAX_COMMIT_ATTEMPTS):
        if txn is not None and table.has_reached(txn):
            raise Overtaken(
                f"txnVersion {txn.version} of txnAppId {txn.application_id!r} was committed by somebody else "
                "while this write ran: its rows were not added; check that one job at a time uses this txnAppId"
            )
        if table.known.mark(pending.user) is not None:
            raise Overtaken(f"batch write {pending.user} was cleaned up while it slept: run it again")
        try:
            table.check_plans([pending], settings, NOT_COMMITTED)
        except TableMadeAnew as anew:
            raise ContradictoryState(
                f"{str(anew).partition(';')[0]}; nothing was committed; run the write again"
            ) from anew
        await table.see_vacuums([pending])
        await presence.check_batch(table.known, pending)
        outcome = await table_format.commit(table.known, batch_draft(pending, settings, txn))
        table.state = outcome.state
        if isinstance(outcome, Committed):
            return table.known.version
    raise contended(table_format.location)


def contended(location: str) -> CommitFailed:
    return CommitFailed(
        f"{MAX_COMMIT_ATTEMPTS} versions of {location} in a row were taken by other writers; what is staged is kept: "
        "run the query again when the table is less busy"
    )
