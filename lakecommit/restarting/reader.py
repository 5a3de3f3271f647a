"""The one reader of what the store has of a table's queries: marks, seals, manifests, files.

Everything here is under `turn`: whoever holds it is the only one that moves the table, or reads a query's state, across
a request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from lakecommit.clock import Clock
from lakecommit.errors import CommitFailed, ContradictoryState, CorruptState
from lakecommit.formats.plan import WritePlan
from lakecommit.model import Marks, Pending, QueryId, SealedEpoch
from lakecommit.progress.epochs import Progress, Replayed, advance
from lakecommit.progress.observer import Observer
from lakecommit.progress.queries import Queries
from lakecommit.progress.settings import TableSettings
from lakecommit.progress.table import FillTable
from lakecommit.restarting.filling import fill_passed
from lakecommit.restarting.presence import FilePresence, FilesGone, Look, missing_files, reason_to_look
from lakecommit.restarting.replay import Replay, replay
from lakecommit.state.stored import ReadState

MAX_REPLAYS = 5


class Reader:
    def __init__(
        self, store: ReadState, table_format: FillTable, queries: Queries, observer: Observer, clock: Clock
    ) -> None:
        self.turn = asyncio.Lock()
        self._store = store
        self._format = table_format
        self._queries = queries
        self._observer = observer
        self._clock = clock
        self.presence = FilePresence(store, table_format.location, clock, queries.looked)

    async def look(self) -> None:
        """Reads the table as it is, and moves every query's marks by it."""
        await self._queries.table.look()
        self._queries.see_marks()

    async def look_anew(self) -> None:
        """The same where another table may be in the place of the one that was known: that one is taken.

        Queries that wrote to the old one find out when they are read again: their seals name its id.
        """
        await self._queries.table.look_anew()
        self._queries.see_marks()

    async def read_anew(self) -> None:
        """Reads the whole table: versions of it were written over, and what is remembered of it is in doubt."""
        self._queries.table.state = await self._format.open()
        self._queries.table_read_anew()

    async def freshen(self) -> None:
        """Looks anew, where the table is not known or something went wrong since it was read."""
        if self._queries.table.state is None or self._queries.outdated:
            await self.look_anew()

    async def start(self, query: QueryId, settings: TableSettings) -> Progress:
        """The progress of a query, replayed from the store where it is not known, and then told to the observers."""
        queries = self._queries
        run = queries.read_for(query, settings)
        # It may end meanwhile, and is not forgotten before this is over.
        with queries.busy_with(query):
            progress = queries.progress.get(query)
            if progress is None:
                try:
                    marks, found = await self._replay(query, settings)
                except BaseException:
                    queries.drop_files(query)
                    raise
                starting = Progress(query, first_of_run=run.may_repeat, anew=queries.table.identity(settings).anew)
                progress = advance(starting, Replayed(marks, found.newest_seal, found.pending))
                queries.has_read(query, progress)
            # Queries that write elsewhere are read here, too, and have left nothing.
            if progress.newest is not None:
                await self._tell(query)
        return progress

    async def _tell(self, query: QueryId) -> None:
        queries = self._queries
        try:
            await self._observer.query_read(query, queries.table.state)
        except BaseException:
            queries.forget(query)
            raise
        if queries.runs[query].ended:
            # It is read once more only for what is pending of it.
            self._observer.run_ended(query)

    async def _replay(self, query: QueryId, settings: TableSettings) -> tuple[Marks, Replay]:
        """Marks and what is pending after them. Before anything is refused, marks and seals are read again.

        They are two reads: what another driver committed and released in between is missing from the second alone.
        """
        for attempt in range(MAX_REPLAYS):
            if self._queries.table.state is not None:
                await fill_passed(self._store, self._format, self._queries.table, query, settings.given_up)
            marks = self._queries.table.marks(query)
            self._queries.drop_files(query)
            try:
                found = await replay(
                    self._store,
                    self._format,
                    query,
                    marks,
                    self._queries.table.identity(settings),
                    self._clock.wall_ms(),
                    self._queries.keep,
                    settings.given_up,
                    -1 if self._queries.table.state is None else self._queries.table.state.version,
                )
                return marks, found
            except (CorruptState, ContradictoryState):
                await self.look()
                if attempt > 0 and self._queries.table.marks(query) == marks:
                    raise
        raise CommitFailed(
            f"somebody else commits query {query} faster than its state can be read; stop all but one driver "
            "of this query and start it again"
        )

    async def check_fit(self, pending: Sequence[Pending], settings: TableSettings, remedy: str) -> None:
        """Raises if files that are pending do not fit the table, or hold rows that it does not take any more."""
        table = self._queries.table
        plans = {each.plan for each in pending if each.plan is not None}
        if any(table.added_checks(WritePlan.from_json(plan)) for plan in plans):
            # It takes Arrow, which nothing else does here.
            from lakecommit.restarting.late_checks import asked_late  # noqa: PLC0415

            pending = await asked_late(self._store, table, pending, remedy)
        table.check_plans(pending, settings, remedy)

    async def look_for(self, query: QueryId, run: Sequence[SealedEpoch], staged: Sequence[Pending]) -> Look:
        """How many of the next epochs may be committed now. Raises if files of the first one are gone; then the
        others are looked for, too, so that all that is damaged is said at once."""
        await self._queries.table.see_vacuums(staged)
        table = self._queries.table.known
        try:
            return await self.presence.look(table, run, staged)
        except FilesGone as gone:
            now_ms, also = self._clock.wall_ms(), []
            for seal in self._queries.progress[query].pending[1:]:
                (files,) = self._queries.staged(query, [seal])
                if reason_to_look(seal, files, table, now_ms) is not None and any(
                    await missing_files(self._store, [files])
                ):
                    also.append(seal.epoch)
            raise gone.with_also(also) from None
