"""What a query has sealed and lakecommit has not committed, and what another sink went past of it.

What follows the mark is committed as a restart would commit it. What another sink went past is told apart by the log:
an epoch that this sink ran itself has its rows in the table, and the sealed files have lost; any other is missing from
the table, and is committed under the own mark alone, since the mark is past it already.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Protocol

from lakecommit.commands import command
from lakecommit.committing.attempt import commit
from lakecommit.errors import ContradictoryState
from lakecommit.formats.base import TableState, Testify, marks_of
from lakecommit.formats.change import Change, Held, Kind
from lakecommit.formats.plan import WritePlan
from lakecommit.model import Epoch, Marks, Pending, QueryId, own_mark_id
from lakecommit.progress.table import ChangeTable, TableView
from lakecommit.restarting.presence import check_present
from lakecommit.restarting.replay import passed_epochs
from lakecommit.state.stored import ReadState, read_pending, seals_after
from lakecommit.storage.base import Delete


class RecoverStore(ReadState, Delete, Protocol):
    """The verbs that recovery takes."""


@dataclass(frozen=True, slots=True)
class LeftOver:
    """What a query has sealed and lakecommit has not committed.

    By where its epochs stand: what other sinks went past is told apart by the log, which was asked.
    """

    query: QueryId
    marks: Marks
    pending: tuple[Pending, ...]
    missing: tuple[Pending, ...]
    repeated: tuple[Pending, ...]

    def __bool__(self) -> bool:
        return bool(self.pending or self.missing or self.repeated)

    @property
    def to_commit(self) -> tuple[Pending, ...]:
        return (*self.missing, *self.pending)

    @property
    def newest_passed(self) -> Epoch | None:
        return max((each.epoch for each in (*self.missing, *self.repeated)), default=None)


async def left_over(store: RecoverStore, table_format: Testify, table: TableState | None, query: QueryId) -> LeftOver:
    """What there is to recover; `table` was read before. Raises what is wrong with the state of `query`."""
    marks = marks_of(table, query)
    after = [
        each for each in await seals_after(store, query, marks.own) if marks.own is None or each.seal.epoch > marks.own
    ]
    passed = await passed_epochs(store, table_format, query, marks, after)
    ran: frozenset[int] | None = frozenset()
    if passed:
        ran = await table_format.marks_after(str(query), -1 if marks.own is None else int(marks.own))
    if ran is None:
        verb = command("recover", table_format.location, "--query", query)
        raise ContradictoryState(
            f"another sink went past epochs {[each.epoch for each in passed][:20]} of query {query}, and the log no "
            "longer shows which of them it ran itself; nothing was committed; save their files "
            f"({verb} --export DIR), look for their rows in the table, then drop them ({verb} --discard)",
            entry="passed-by-another-sink",
        )
    pending = [each.seal for each in after if marks.mark is None or each.seal.epoch > marks.mark]
    return LeftOver(
        query=query,
        marks=marks,
        pending=tuple([await read_pending(store, seal) for seal in pending]),
        missing=tuple(each for each in passed if each.epoch not in ran),
        repeated=tuple(each for each in passed if each.epoch in ran),
    )


async def commit_passed(
    store: RecoverStore,
    table_format: ChangeTable,
    query: QueryId,
    new_id: Callable[[], str],
    accepted_table_id: str | None = None,
    given_up: Collection[Epoch] = (),
) -> int | None:
    """Commits the epochs that another sink went past and did not run; returns the version, None where there is none.

    The files of those that it did run are deleted first, while their manifests still name them; those of `given_up` are
    left out. Raises if a file is gone, since the sink that went past may also have vacuumed, or if the epochs no
    longer fit the table.
    """
    view = TableView(table_format)
    await view.look()
    if table_format.fills_passed:
        # Whoever commits what is pending does that first.
        return None

    async def make() -> Change | None:
        table = view.state
        found = await left_over(store, table_format, table, query)
        newest = found.newest_passed
        if table is None or newest is None:
            return None
        missing = [each for each in found.missing if each.epoch not in given_up]
        for plan in {each.plan for each in missing if each.plan is not None}:
            table_format.check(table, WritePlan.from_json(plan), accepted_table_id)
        await check_present(store, table_format.location, missing)
        lost = [file.path for each in found.repeated for file in each.files]
        if lost and await store.delete(lost):
            raise ContradictoryState(
                f"some files of epochs of query {query} that had lost are not deleted yet; try again"
            )
        first = Epoch(0 if found.marks.own is None else found.marks.own + 1)
        recovered = tuple(each.epoch for each in missing)
        return Change(
            id=new_id(),
            kind=Kind.APPEND_EPOCHS,
            adds=tuple(file for each in missing for file in each.files),
            marks=((own_mark_id(query), newest),),
            holds=(Held(query, settled=((first, newest),), recovered=recovered),),
        )

    landed = await commit(view, nullcontext(), make)
    return None if landed is None else landed.table.version
