"""Cleans up a table's log without taking from readers what their leases keep.

A lease keeps the log that its version is read from, and all versions after it. Where a clean-up deletes data files,
too, those that only old versions name, it goes the way of a vacuum: by a guarded cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lakecommit.clock import Clock
from lakecommit.formats.base import Maintain
from lakecommit.formats.upkeep import LogCleaned, LogSurvey
from lakecommit.leases.cutting import Cut, CutStore, end_run, guarded_cut, store_now
from lakecommit.leases.listed import SeenLease, counting, list_leases, oldest_leased, times_seen
from lakecommit.leases.who import this_process
from lakecommit.state.lease_layout import clock_path

_WHO = "clean-up of the log"


@dataclass(frozen=True, slots=True)
class LogCleaner:
    """`new_id` gives an id that nobody else uses: a UUID."""

    store: CutStore
    table_format: Maintain
    clock: Clock
    new_id: Callable[[], str]
    random: Callable[[], float]

    async def survey(self) -> LogSurvey:
        """What a clean-up would do. Writes nothing, and so knows no more of the store's clock than what it has seen: a
        lease counts that may have expired since."""
        leases = await list_leases(self.store)
        return await self.table_format.survey_log(oldest_leased(counting(leases, times_seen(leases))))

    async def clean(self) -> LogCleaned:
        """Deletes what has expired and is kept by nobody. Raises `UnsupportedTable` if a lease is not understood."""
        if await self.table_format.log_keeps_files():
            return await self._clean_with_files()
        return await self.table_format.clean_log(oldest_leased(await self._leases()))

    async def _leases(self) -> Sequence[SeenLease]:
        """Those that count, which takes the store's clock only if there are any."""
        leases = await list_leases(self.store)
        if not leases:
            return ()
        run = self._new_run()
        now_ms = await store_now(self.store, run)
        await self.store.delete([clock_path(run)])
        return counting(leases, now_ms)

    async def _clean_with_files(self) -> LogCleaned:
        boundary = (await self.table_format.survey_log()).boundary
        if boundary is None:
            return LogCleaned()
        clock_run = self._new_run()
        now_ms = await store_now(self.store, clock_run)
        cut = await guarded_cut(
            self.store,
            boundary,
            now_ms,
            who=this_process(_WHO),
            new_run=self._new_run,
            clock=self.clock,
            random=self.random,
        )
        if not isinstance(cut, Cut):
            await self.store.delete([clock_path(clock_run)])
            return LogCleaned(kept="readers took leases all the time; it is tried again with the next clean-up")
        cleaned = await self.table_format.clean_log(cut.version)
        if cleaned.unconfirmed:
            # Who comes next goes on from the same cut.
            return cleaned
        await end_run(self.store, cut, clock_run)
        return cleaned

    def _new_run(self) -> str:
        return self.new_id().replace("-", "")
