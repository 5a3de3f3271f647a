"""A vacuum from its beginning to its end. `docs/protocol.md` says why the order is what keeps readers safe.

    now         an object of this run's own says what the store's clock is; nothing that comes later looks old
    found       manifests, then the log, then the table, into the candidates
    cut         made beside the leases: see `lakecommit.leases.cutting`
    deleted     by thousands, with a look at the log before each
    noted       how far: the next vacuum reads the log from there

A vacuum that dies anywhere leaves nothing to repair, and two at once delete the same files twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from lakecommit.clock import Clock
from lakecommit.errors import InvalidInput
from lakecommit.formats.base import Open, TableState
from lakecommit.formats.registry import no_table
from lakecommit.formats.vacuuming import LogToVacuum, Vacuum
from lakecommit.leases.cutting import Cut, CutStore, Fenced, as_far_as, end_run, guarded_cut, store_now
from lakecommit.leases.listed import SeenLease, counting, list_leases
from lakecommit.leases.who import Who
from lakecommit.vacuuming import stored
from lakecommit.vacuuming.asked import Asked, retained_ms
from lakecommit.vacuuming.candidates import Candidates
from lakecommit.vacuuming.gathering import (
    Limits,
    gather_listed,
    gather_logged,
    gather_staged,
    last_old,
    missing_versions,
)
from lakecommit.vacuuming.progress import NO_PROGRESS, Progress
from lakecommit.vacuuming.report import Found, HeldBack, Vacuumed
from lakecommit.vacuuming.sweeping import DELETED_TOGETHER, Swept, sweep

DIRECTORIES_SHOWN = 10


class VacuumFormat(Open, Vacuum, Protocol):
    """The verbs that a vacuum takes of a format."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Means:
    """What a vacuum works with. `new_run` gives 32 new hexadecimal digits."""

    who: Who
    new_run: Callable[[], str]
    clock: Clock
    random: Callable[[], float]
    local_dir: str | None = None


class TableVacuum:
    """A vacuum of one table, as it was asked for."""

    def __init__(self, store: CutStore, table_format: VacuumFormat, asked: Asked, means: Means) -> None:
        self._store = store
        self._format = table_format
        self._asked = asked
        self._means = means

    async def survey(self, progress: Progress = NO_PROGRESS) -> Found:
        """What would go. Writes nothing: what is old is judged by the own clock, not by the store's."""
        now_ms = self._means.clock.wall_ms()
        state = await self._checked()
        with Candidates(self._means.local_dir) as candidates:
            gathered = await self._gather(state, candidates, now_ms, progress)
            leases = await list_leases(self._store)
            version = as_far_as(gathered.old, counting(leases, now_ms, self._asked.ignored))
            return self._found(gathered, candidates, version, leases, now_ms)

    async def apply(self, progress: Progress = NO_PROGRESS) -> Vacuumed:
        """Deletes it. Whatever it raises, and wherever it dies, what is left is found by the next one."""
        means = self._means
        # Bad input changes nothing.
        state = await self._checked()
        clock_run = means.new_run()
        now_ms = await store_now(self._store, clock_run)
        with Candidates(means.local_dir) as candidates:
            gathered = await self._gather(state, candidates, now_ms, progress)
            cut = await guarded_cut(
                self._store,
                gathered.old,
                now_ms,
                who=means.who,
                new_run=means.new_run,
                clock=means.clock,
                random=means.random,
                worth=candidates.any_up_to,
                ignored=self._asked.ignored,
            )
            if isinstance(cut, Fenced):
                return Vacuumed(self._found(gathered, candidates, -1, (), now_ms), Swept(), fenced=cut.runs)
            found = self._found(gathered, candidates, cut.version, cut.kept_by, now_ms)
            swept = Swept()
            if isinstance(cut, Cut):
                progress.begin("deleting", -(-found.all.files // DELETED_TOGETHER))
                last = gathered.log.last
                swept = await sweep(self._store, self._format, candidates, cut.version, last, progress.advance)
            if not swept.unconfirmed:
                # What a manifest names was removed and is there: it is looked for again once its epoch is released. So
                # is what versions that are gone removed, until the first one that is there has its turn.
                later = gathered.announced or (found.missing is not None and cut.version <= found.missing[1])
                to = gathered.stored.swept if later else cut.version
                await stored.note_swept(self._store, gathered.stored, to)
                await end_run(self._store, cut, clock_run)
            return Vacuumed(found, swept)

    async def _checked(self) -> TableState:
        """Raises `InvalidInput` or `UnsupportedTable` if it cannot be done as it is asked for."""
        state = await self._format.open()
        if state is None:
            raise no_table(self._format.name, self._format.location)
        self._retained_ms(state)
        known = {each.name.lease for each in await list_leases(self._store)} if self._asked.ignored else set()
        if unknown := sorted(set(self._asked.ignored) - known):
            raise InvalidInput(
                f"there is no lease {', '.join(unknown)} on {self._format.location}; it may have ended or expired, "
                "and then holds nothing back"
            )
        return state

    def _retained_ms(self, state: TableState) -> int:
        self._format.check_vacuum(state)
        return retained_ms(self._asked, self._format.kept_ms(state), self._format.location)

    async def _gather(self, state: TableState, candidates: Candidates, now_ms: int, progress: Progress) -> _Gathered:
        asked, table_format = self._asked, self._format
        before = await stored.vacuumed(self._store, now_ms)
        if asked.full:
            await gather_staged(self._store, candidates, progress)
        log = await table_format.log_to_vacuum(state, before.swept)
        before.check(log.newest, table_format.location)
        # Whoever has come in between may have given the table a feature, or may have made it anew.
        state = await table_format.look(state)
        retain_ms = self._retained_ms(state)
        limits = Limits(
            before.swept,
            # What was removed a moment ago is old enough if nothing is retained.
            last_old(log, now_ms - retain_ms if retain_ms else None),
            frozenset(map(str.lower, state.partition_columns)),
            now_ms - asked.orphans_after_ms if asked.full else None,
        )
        await gather_logged(table_format, log, limits, candidates, progress)
        if asked.full:
            await gather_listed(self._store, log, limits, candidates, progress)
        candidates.keep_after(limits.last)
        announced = candidates.keep_others()
        return _Gathered(log, limits.last, retain_ms, before, table_format.removes_files(state), announced)

    def _found(
        self, gathered: _Gathered, candidates: Candidates, version: int, leases: Sequence[SeenLease], now_ms: int
    ) -> Found:
        old, log = gathered.old, gathered.log
        count = counting(leases, now_ms, self._asked.ignored)
        return Found(
            newest=log.newest,
            old=old,
            version=version,
            swept=gathered.stored.swept,
            retain_ms=gathered.retain_ms,
            all=candidates.counted(-1, version),
            kinds=tuple(candidates.by_kind(version)),
            directories=tuple(candidates.by_directory(version, DIRECTORIES_SHOWN)),
            held_back=tuple(
                HeldBack(each, candidates.counted(each.name.version, old)) for each in count if each.name.version < old
            ),
            missing=missing_versions(log, gathered.stored.swept),
            removes_files=gathered.removes_files,
        )


@dataclass(frozen=True, slots=True)
class _Gathered:
    log: LogToVacuum
    old: int
    retain_ms: int
    stored: stored.Stored
    removes_files: bool
    announced: int
