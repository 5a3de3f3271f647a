"""The error for a table that is not the one that a query has sealed epochs for: with both ids and a remedy."""

from __future__ import annotations

from collections.abc import Sequence

from lakecommit.concurrency.parallel import in_parallel
from lakecommit.epoch_ranges import ranges
from lakecommit.errors import ContradictoryState, CorruptState
from lakecommit.formats.base import made_anew
from lakecommit.model import Epoch, QueryId
from lakecommit.restarting.presence import discard_command, missing_files
from lakecommit.state.stored import ReadState, StoredSeal, read_pending


async def another_table(
    store: ReadState, location: str, table_id: str, query: QueryId, sealed_for: str, pending: Sequence[StoredSeal]
) -> ContradictoryState:
    """The error for a query whose seals are of the table `sealed_for`, while `table_id` is here; "" where none is.

    `pending` are its seals, with their winners, that are not in the table: their files are looked for, so that the
    remedy works when it is followed.
    """
    if not table_id:
        return ContradictoryState(
            f"query {query} has sealed epochs for the table with id {sealed_for}, but that table is gone from "
            f"{location}; nothing was committed; restore its log from a backup or a bucket version. Or create the "
            "table anew and start the query again, which then says how to go on without reading any input again; or "
            "start the query with a new checkpointLocation"
        )
    staged = [each for each in pending if each.seal.totals.files]
    if not staged:
        return made_anew(location, sealed_for, table_id, f" Nothing of query {query} is pending.")
    epochs = [each.seal.epoch for each in staged]
    found = await in_parallel(lambda each: _is_lost(store, each), staged)
    lost = {each.seal.epoch for each, is_lost in zip(staged, found, strict=True) if is_lost}
    what = f" Query {query} has sealed {_figures(staged)} for the old table, and this one does not have them."
    if not lost:
        everything = discard_command(location, query, epochs, table_id)
        remedy = (
            f" To go on and add them to the table as it is, start the query with the option acceptTableId={table_id}. "
            f"To go on without them, run '{everything}' first. Neither reads any input again"
        )
    else:
        others = [each for each in staged if each.seal.epoch not in lost]
        added = f", which adds {_figures(others)}" if others else ""
        gone = "Their files are gone" if not others else f"Files of epochs {ranges(lost)} are gone"
        remedy = (
            f" {gone}: to go on, run '{discard_command(location, query, lost, table_id)}'{added}, and then start the "
            f"query with the option acceptTableId={table_id}. No input is read again"
        )
    return made_anew(location, sealed_for, table_id, what, remedy)


async def _is_lost(store: ReadState, stored: StoredSeal) -> bool:
    try:
        files = await read_pending(store, stored.seal)
    except CorruptState:
        return True
    return any(await missing_files(store, [files]))


def _figures(seals: Sequence[StoredSeal]) -> str:
    rows = sum(each.seal.totals.rows for each in seals)
    epochs: list[Epoch] = [each.seal.epoch for each in seals]
    which = f"epoch {epochs[0]} (" if len(epochs) == 1 else f"epochs {ranges(epochs)} ({len(epochs)} epochs, "
    return f"{which}{rows} row{'' if rows == 1 else 's'})"
