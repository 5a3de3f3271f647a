"""How a directory's log grows: an entry for each epoch, or the next list of a directory of batch writes.

Everything is created if absent, so that of two writers one is first; the other finds the same bytes, or something else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from lakecommit.clock import Clock, Moment
from lakecommit.errors import CommitFailed, ContradictoryState, CorruptState, StoreError
from lakecommit.formats.base import Committed, Conflict, FormatStore, Moved, check_change, made_anew
from lakecommit.formats.change import Change, Kind
from lakecommit.formats.parquet.asked_apart import asked_of, known_from
from lakecommit.formats.parquet.batches import ParquetSelection, conflict, next_version
from lakecommit.formats.parquet.compacting import Spool
from lakecommit.formats.parquet.lines import HEADER, entry_of
from lakecommit.formats.parquet.log import compacted, confirm, following, list_log, look, open_table
from lakecommit.formats.parquet.marks import OWN_MARKS_KEPT_MS
from lakecommit.formats.parquet.names import LOG, entry_path, is_compact, record_path
from lakecommit.formats.parquet.state import ParquetState
from lakecommit.formats.plan import BATCH
from lakecommit.model import DataFile, QueryId, own_mark_id
from lakecommit.storage.base import Found
from lakecommit.storage.once import Mine, Theirs, create_once

LOOK_AGAIN_MS = 10_000
# A compact that is larger is put by a process of its own.
APART_BYTES = 32 * 1024**2
CONFIRMATIONS = 20
# For so long every version after that of a write has its mark, whatever the clocks of their writers say.
SURELY_MARKED_MS = OWN_MARKS_KEPT_MS - 60 * 60_000


@dataclass(frozen=True, slots=True)
class ParquetEvolution:
    schema: str


class LogWriter:
    def __init__(self, store: FormatStore, clock: Clock, random: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self._spool = Spool(store)
        # Who puts compacts that are too large for this process; None where it does so itself.
        self.apart: Callable[[Mapping[str, str]], Awaitable[Mapping[str, str]]] | None = None

    async def commit(self, state: ParquetState, change: Change) -> Committed | Moved | Conflict:
        """Puts the entry after that of `state`, once; for a fence, empty ones up to it.

        Spark's readers take what is there in the order of its numbers, so that a crash leaves a prefix. Raises
        `ContradictoryState` where another sink has put something else in the epoch's place.
        """
        check_change(state, change)
        confirmed = await self.confirmed(state)
        if not _is_same(confirmed, state):
            return Moved(confirmed)
        state = confirmed
        if change.kind is Kind.EVOLVE:
            return await self._evolve(state, change)
        if state.record.owner == BATCH:
            return await self._commit_batch(state, change)
        mark = max((mark for _, mark in change.marks), default=state.version)
        for number in _numbers(state, mark):
            adds = change.adds if number == mark else ()
            after = await self._put(state, number, entry_of(adds, state.record.root))
            if isinstance(after, Moved):
                return after
            if after is None:
                if change.kind is Kind.FENCE:
                    return Moved(await self._reopened(state))
                raise another_sink(self._store.location, number)
            state = after
        return Committed(state)

    async def fill(self, state: ParquetState, number: int, files: Sequence[DataFile]) -> ParquetState:
        """Puts the entry of an epoch that somebody else's sink went past; lower ones come first, so that all is there
        that a compact has to hold."""
        interval, body = state.record.interval, entry_of(files, state.record.root)
        self._spool.forget()
        if is_compact(number, interval):
            body, _ = await self._gathered(state, number, body)
            self._spool.forget()
        else:
            await self.confirmed(state)
        await self.create(entry_path(number, interval), body)
        return await self._reopened(state)

    async def body(self, version: int, state: ParquetState) -> bytes | None:
        """The version as it is; None where it was cleaned up."""
        found = await self._store.get(entry_path(version, state.record.interval))
        return found.body if isinstance(found, Found) else None

    async def create(self, path: str, body: bytes) -> Mine | Theirs:
        return await create_once(self._store, path, body, clock=self._clock, random=self._random)

    async def confirmed(self, state: ParquetState) -> ParquetState:
        """Create-if-absent is no fence where somebody deletes: so a state that is not young is confirmed first.

        Raises `ContradictoryState` if the directory is gone, or was made anew.
        """
        for _ in range(CONFIRMATIONS):
            if not state.looked.is_older_than(LOOK_AGAIN_MS, Moment.of(self._clock)):
                return state
            confirmed = await confirm(self._store, self._clock, state)
            if not _is_same(confirmed, state):
                return confirmed
            state = confirmed
        raise StoreError(
            f"{self._store.location} answers so slowly that what it says of entry {state.version} is out of date when "
            "it comes; nothing was put; it is tried again"
        )

    async def _commit_batch(self, state: ParquetState, change: Change) -> Committed | Moved | Conflict:
        """Puts the next list, with what the change adds and removes.

        A slot may be free because its version was cleaned up long ago: so after its PUT a write looks whether it is the
        newest version, or in it. Raises `CommitFailed` if it slept for so long that this cannot be told.
        """
        body = HEADER if state.version < 0 else await self.body(state.version, state)
        if body is None:
            return Moved(await self._reopened(state))
        if isinstance(change.removes, ParquetSelection) and (
            reason := conflict(body, change.removes, state.record.root)
        ):
            return Conflict(state, reason)
        now = Moment.of(self._clock)
        number = state.version + 1
        path = entry_path(number, state.record.interval)
        put = next_version(state, body, change, now.wall_ms)
        outcome = await self.create(path, put)
        if isinstance(outcome, Mine) and (await list_log(self._store)).newest == number:
            return Committed(following(state, put, outcome.etag, now))
        newest = await self._reopened(state)
        if _is_in(change, newest):
            return Committed(newest)
        if now.is_older_than(SURELY_MARKED_MS, Moment.of(self._clock)):
            raise CommitFailed(
                f"the process slept for days while it put version {number} of {self._store.location}, and the log "
                f"keeps no mark for so long that would tell whether {change.id} is in it; nothing was deleted; look "
                "for its rows, and run it again if they are missing"
            )
        if isinstance(outcome, Mine):
            await self._store.delete([path])
            newest = await self._reopened(state)
        return Moved(newest)

    async def _reopened(self, state: ParquetState) -> ParquetState:
        found = await open_table(self._store, self._clock)
        if found is None or found.table_id != state.table_id:
            raise made_anew(self._store.location, state.table_id, "gone" if found is None else found.table_id)
        return replace(found, rewritten=state.rewritten)

    async def _evolve(self, state: ParquetState, change: Change) -> Committed | Moved:
        assert isinstance(change.evolves, ParquetEvolution)
        record = replace(state.record, number=state.record.number + 1, schema=change.evolves.schema)
        outcome = await self.create(record_path(record.number), record.to_json())
        if isinstance(outcome, Mine):
            return Committed(replace(state, record=record, record_etag=outcome.etag))
        return Moved(await look(self._store, self._clock, state))

    async def compact(self, job: Mapping[str, str]) -> Mapping[str, str]:
        """Puts the compact that `job` asks for, in the process that is there for it: as `apart` answers."""
        known = known_from(job, Moment.of(self._clock))
        state = await confirm(self._store, self._clock, known)
        if not _is_same(state, known):
            return {"moved": "true"}
        after = await self._put_compact(state, int(job["number"]), job["entry"].encode())
        if isinstance(after, Moved):
            return {"moved": "true"}
        if after is None:
            return {}
        assert after.digest is not None
        return {"etag": after.etag or "", "digest": after.digest.hex(), "bytes": str(after.log_bytes)}

    async def _put(self, state: ParquetState, number: int, entry: bytes) -> ParquetState | Moved | None:
        """Puts the entry of a number that follows `state`; None where something else is in its place."""
        if is_compact(number, state.record.interval):
            large = state.log_bytes > APART_BYTES
            put = self._put_apart if large and self.apart is not None else self._put_compact
            return await put(state, number, entry)
        before = replace(state, version=number - 1)
        after = await self._put_here(before, entry)
        if after is not None:
            self._spool.follow(before, entry)
        return after

    async def _put_apart(self, state: ParquetState, number: int, entry: bytes) -> ParquetState | Moved | None:
        """Has the compact put by the process that is there for it, which reads the log: this one has no need of it."""
        assert self.apart is not None
        self._spool.forget()
        now, answer = Moment.of(self._clock), await self.apart(asked_of(state, number, entry))
        if "moved" in answer:
            return Moved(await confirm(self._store, self._clock, state))
        if not answer:
            return None
        before, digest = replace(state, version=number - 1), bytes.fromhex(answer["digest"])
        return compacted(before, int(answer["bytes"]), digest, answer["etag"] or None, now)

    async def _put_compact(self, state: ParquetState, number: int, entry: bytes) -> ParquetState | Moved | None:
        """Puts the compact of a number, in whatever process, if the directory is still that of `state` when the log was
        read."""
        body, confirmed = await self._gathered(state, number, entry)
        if not _is_same(confirmed, state):
            self._spool.forget()
            return Moved(confirmed)
        after = await self._put_here(replace(confirmed, version=number - 1), body)
        if after is None:
            self._spool.forget()
        return after

    async def _gathered(self, state: ParquetState, number: int, entry: bytes) -> tuple[bytes, ParquetState]:
        """The compact of a number, and `state`, confirmed after its lines were read: that may have taken long."""
        try:
            body = await self._spool.compact_after(replace(state, version=number - 1), entry)
            return body, await self.confirmed(state)
        except CorruptState:
            # What was listed may have been cleaned up before it was read, behind a newer compact.
            self._spool.forget()
            confirmed = await confirm(self._store, self._clock, state)
            if _is_same(confirmed, state):
                raise
            return b"", confirmed
        except BaseException:
            self._spool.forget()
            raise

    async def _put_here(self, state: ParquetState, body: bytes) -> ParquetState | None:
        now = Moment.of(self._clock)
        try:
            outcome = await self.create(entry_path(state.version + 1, state.record.interval), body)
        except BaseException:
            self._spool.forget()
            raise
        return following(state, body, outcome.etag, now) if isinstance(outcome, Mine) else None


def _numbers(state: ParquetState, mark: int) -> range:
    """Which entries bring the log to `mark`: mostly that one alone.

    Where many are left out, readers need the two newest compacts before it and all since, and nothing below.
    """
    interval = state.record.interval
    second_newest = ((mark + 1) // interval - 1) * interval - 1
    return range(max(state.version + 1, second_newest), mark + 1)


def _is_in(change: Change, newest: ParquetState) -> bool:
    """Whether the change landed before this version: a write by its own mark. A fence has none, and its marks are all
    that it is."""
    if change.kind is Kind.FENCE:
        reached = ((newest.mark(name), mark) for name, mark in change.marks)
        return all(there is not None and there >= mark for there, mark in reached)
    return own_mark_id(QueryId(change.id)) in newest.batch_marks


def _is_same(left: ParquetState, right: ParquetState) -> bool:
    return (left.version, left.rewritten, left.record) == (right.version, right.rewritten, right.record)


def another_sink(location: str, number: int) -> ContradictoryState:
    return ContradictoryState(
        f"{location}/{LOG}/{number} holds other files than those that were sealed for epoch {number}: Spark's own sink "
        "has run the epoch, or somebody has given it up; the sealed files have lost and are deleted later; nothing is "
        "there twice. Let only one of the two sinks run, and start the query again, which goes on with the next epoch",
        entry="another-sink",
    )
