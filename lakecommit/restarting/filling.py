"""Epochs that another sink went past, made up for when the query starts: in formats that nobody can read until then."""

from __future__ import annotations

from collections.abc import Collection

from lakecommit.errors import ContradictoryState
from lakecommit.model import Epoch, QueryId
from lakecommit.progress.table import FillTable, TableView
from lakecommit.restarting.presence import check_present
from lakecommit.state.stored import ReadState, read_pending, seals_after


async def fill_passed(
    store: ReadState,
    table_format: FillTable,
    view: TableView,
    query: QueryId,
    given_up: Collection[Epoch] = (),
) -> None:
    """Lowest first, from the seals. What that sink has run itself stays as it is, and the sealed files have lost. Those
    of `given_up` are made up for with nothing.

    Precondition: the marks were read. Raises `ContradictoryState` if an epoch is missing that has no seal, and
    `FilesGone` where files of one are gone.
    """
    marks = view.marks(query)
    if not table_format.fills_passed or marks.mark is None or marks.own == marks.mark:
        return
    own = -1 if marks.own is None else marks.own
    for stored in await seals_after(store, query, marks.own):
        if own < stored.seal.epoch <= marks.mark:
            if stored.seal.epoch in given_up:
                view.state = await table_format.fill(view.known, stored.seal.epoch, ())
                continue
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


async def fill_with_nothing(table_format: FillTable, view: TableView, query: QueryId) -> None:
    """Makes up for all that another sink went past and did not run, with nothing: for a query that is given up, since
    its sealed epochs would be in the way of readers for good."""
    await view.look()
    marks = view.marks(query)
    if view.state is None or not table_format.fills_passed or marks.mark is None or marks.own == marks.mark:
        return
    own = -1 if marks.own is None else int(marks.own)
    there = await table_format.marks_after(str(query), own) or frozenset()
    for epoch in (each for each in range(own + 1, marks.mark) if each not in there):
        view.state = await table_format.fill(view.known, epoch, ())
