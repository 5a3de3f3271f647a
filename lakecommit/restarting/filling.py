"""Epochs that another sink went past, made up for when the query starts: in formats that nobody can read until then."""

from __future__ import annotations

from lakecommit.errors import ContradictoryState
from lakecommit.model import QueryId
from lakecommit.progress.table import FillTable, TableView
from lakecommit.restarting.presence import check_present
from lakecommit.state.stored import ReadState, read_pending, seals_after


async def fill_passed(store: ReadState, table_format: FillTable, view: TableView, query: QueryId) -> None:
    """Lowest first, from the seals. What that sink has run itself stays as it is, and the sealed files have lost.

    Precondition: the marks were read. Raises `ContradictoryState` where an epoch is missing that has no seal, and
    `FilesGone` where files of one are gone.
    """
    marks = view.marks(query)
    if not table_format.fills_passed or marks.mark is None or marks.own == marks.mark:
        return
    own = -1 if marks.own is None else marks.own
    for stored in await seals_after(store, query, marks.own):
        if own < stored.seal.epoch <= marks.mark:
            pending = await read_pending(store, stored.seal)
            await check_present(store, table_format.location, [pending])
            view.state = await table_format.fill(view.known, stored.seal.epoch, pending.files)
    now = view.marks(query)
    if now.own != now.mark:
        missing = 0 if now.own is None else now.own + 1
        raise ContradictoryState(
            f"the log of {table_format.location} has no entry {missing}, though later ones are there, and query "
            f"{query} has no seal of that epoch: nobody can read the directory. Restore the entry from a backup; or, "
            "if the epoch had no rows, put a file there that holds v1 and nothing else",
            entry="passed-by-another-sink",
        )
