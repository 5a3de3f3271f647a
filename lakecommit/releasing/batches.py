"""Cleaning up behind batch writes. They have no seal: only the committer of one, or the log, knows who has won."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from lakecommit.clock import Clock
from lakecommit.committing.attempt import commit
from lakecommit.errors import InvalidInput
from lakecommit.formats.base import TableState, Testify
from lakecommit.formats.change import Change, Kind
from lakecommit.model import RELEASE_AGE_MS, AttemptId, QueryId
from lakecommit.progress.table import ChangeTable, TableView
from lakecommit.releasing.objects import CleanStore, NamedFiles, delete, read_files, without_the_tables
from lakecommit.releasing.query import Cleaned
from lakecommit.state.stored import NamedManifest, list_manifests


class BatchCleaner:
    """Cleans up behind a batch write that has ended in this process.

    `over` are attempts that upload nothing any more, because they have reported: their manifests go at once, those of
    the others when their deadline is long over. `lost` says that nothing was committed and nothing ever will be, so
    that the files of all attempts go; otherwise those in `over` are the table's. Then a task has failed, and may not
    know it: its rows have just ended, and it writes those that it has. So it is looked for again for a while.
    """

    def __init__(
        self, store: CleanStore, query: QueryId, over: Collection[AttemptId], clock: Clock, *, lost: bool
    ) -> None:
        self.query = query
        self._store = store
        self._over = frozenset(over)
        self._clock = clock
        self._lost = lost
        self._until_ms = clock.wall_ms() + (RELEASE_AGE_MS if lost else 0)

    async def step(self) -> bool:
        """Deletes what may go; whether nothing is left, or to come."""
        manifests = [named for group in (await list_manifests(self._store, self.query)).values() for named in group]
        losing = [named for named in manifests if self._lost or named.attempt.id not in self._over]
        lost = await read_files(self._store, losing)
        now_ms = self._clock.wall_ms()
        going = [
            named
            for named in manifests
            if named not in lost.damaged and (named.attempt.id in self._over or named.is_old(now_ms))
        ]
        deleted = await delete(self._store, lost, going)
        return deleted.manifests == len(manifests) and now_ms >= self._until_ms


@dataclass(frozen=True, slots=True)
class DeadBatch:
    """A batch write of which only its state is left. `committed` says that the log names files of it."""

    query: QueryId
    manifests: Sequence[NamedManifest]
    lost: NamedFiles
    committed: bool

    def __bool__(self) -> bool:
        return bool(self.manifests)


async def survey_dead_batch(
    store: CleanStore, table_format: Testify, query: QueryId, clock: Clock, older_than_ms: int
) -> DeadBatch | None:
    """What a batch write left, if the newest thing it left is older than `older_than_ms`; None where it is not."""
    manifests = [named for group in (await list_manifests(store, query)).values() for named in group]
    age_ms = max(older_than_ms, RELEASE_AGE_MS)
    if any(clock.wall_ms() - named.modified_ms <= age_ms for named in manifests):
        return None
    found = await read_files(store, manifests)
    lost = await without_the_tables(table_format, found)
    return DeadBatch(query, manifests, lost, committed=len(lost.paths) < len(found.paths))


async def clean_dead_batch(
    store: CleanStore, table_format: ChangeTable, dead: DeadBatch, new_id: Callable[[], str]
) -> Cleaned:
    """Deletes what a dead batch write left and the table does not name, behind a fence.

    The write may only be asleep. The fence is a version with its mark: whatever it tries to commit later meets that
    version and gives up; what it committed before is in the log that is asked after the fence.
    """
    lost = dead.lost
    if not dead.committed:
        await fence(table_format, [(str(dead.query), 0)], new_id)
        lost = await without_the_tables(table_format, lost)
    deleted = await delete(store, lost, [named for named in dead.manifests if named not in lost.damaged])
    return Cleaned(deleted.files, deleted.manifests, 0, deleted.unconfirmed)


async def fence(table_format: ChangeTable, marks: Sequence[tuple[str, int]], new_id: Callable[[], str]) -> None:
    """Commits a version with these marks and no file. A mark that is reached already is left as it is.

    Raises `InvalidInput` if there is no table: whoever sleeps could still create it.
    """
    view = TableView(table_format)
    await view.look()

    async def make() -> Change | None:
        table = view.state
        if table is None:
            raise InvalidInput(
                f"there is no table at {table_format.location}, so nothing can be fenced off; nothing was deleted; "
                "check the location, or delete the whole directory"
            )
        due = tuple(mark for mark in marks if not _reached(table, mark))
        return Change(new_id(), Kind.FENCE, marks=due) if due else None

    await commit(view, nullcontext(), make)


def _reached(table: TableState, mark: tuple[str, int]) -> bool:
    reached = table.mark(mark[0])
    return reached is not None and reached >= mark[1]
