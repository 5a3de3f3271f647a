"""Sealing: the durable decision which attempts won an epoch's tasks, once, in order, beside any commit.

What is known of the query decides, without a request. If it is not known, is in doubt or would refuse the epoch, marks
and seals are read first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakecommit.clock import Clock
from lakecommit.errors import CommitFailed, ContradictoryState, CorruptState, TableMadeAnew
from lakecommit.formats.base import made_anew
from lakecommit.model import DataFile, Epoch, QueryId, Report, Seal, TaskId, Totals
from lakecommit.progress.backlog import Backlog, EpochOffsets
from lakecommit.progress.cadence import has_room
from lakecommit.progress.epochs import (
    EpochVerdict,
    Repeated,
    Reported,
    Sealed,
    judge_epoch,
    knows_newest_seal,
    winners_of,
)
from lakecommit.progress.observer import Observer
from lakecommit.progress.queries import Queries
from lakecommit.progress.runs import Caught, Pressed, Run, Sealing
from lakecommit.progress.settings import TableSettings
from lakecommit.progress.table import NOT_SEALED
from lakecommit.restarting.reader import Reader
from lakecommit.sealing.reports import reported
from lakecommit.state import codec, layout
from lakecommit.state.stored import Staged, StoredSeal, checked_seal, pending_of, read_manifests
from lakecommit.storage.base import Store
from lakecommit.storage.once import Mine, create_once
from lakecommit.watermark import advance, epoch_watermark


class Sealer:
    def __init__(
        self,
        store: Store,
        queries: Queries,
        reader: Reader,
        observer: Observer,
        *,
        clock: Clock,
        random: Callable[[], float],
        commit: Callable[[], None],
    ) -> None:
        """`commit` makes the committer commit what is pending; it does not wait."""
        self._store = store
        self._queries = queries
        self._table = queries.table
        self._reader = reader
        self._observer = observer
        self._clock = clock
        self._random = random
        self._commit = commit

    async def seal(
        self,
        query: QueryId,
        epoch: Epoch,
        reports: Sequence[Report | None],
        schema: str,
        offsets: EpochOffsets,
        run: Run,
    ) -> None:
        """Postcondition: the epoch is sealed and, unless it is done already, pending. A repetition is accepted.

        Waits for room before the seal is put, where the run allows no more to be pending.
        """
        verdict = await self._judge(query, epoch, offsets.fingerprint, run.asked_for)
        if verdict is EpochVerdict.FRESH and self._table.state is None:
            winners_of(reports, query, epoch)
            verdict = await self._create(query, epoch, offsets.fingerprint, schema, run.asked_for)
        # Again where the table was made anew while that was asked: then it is another's, which is said.
        while not self._table.admits(query):
            verdict = await self._admit(query, epoch, offsets.fingerprint, run.asked_for)
        if self._queries.is_over(query, run):
            raise _out_of_date(query, epoch, "a new run of the query has begun, which goes on")
        backlog = self._backlog(query, run, offsets)
        if verdict is EpochVerdict.REPEATED:
            self._queries.move(query, Repeated(epoch))
            self._queries.happened(query, Sealing())
        else:
            await self._put(query, epoch, reports, offsets.fingerprint, backlog, run)
        # Not before: the snapshot that ends the backlog has the epoch that ends it.
        self._queries.happened_in(query, run, Caught(backlog))

    async def _judge(
        self, query: QueryId, epoch: Epoch, fingerprint: str | None, settings: TableSettings
    ) -> EpochVerdict:
        """Judges the epoch; before it is refused, marks and seals are read again: another driver may have moved on."""
        if self._queries.knows(query) and knows_newest_seal(self._queries.progress[query]):
            try:
                return judge_epoch(self._queries.progress[query], epoch, fingerprint)
            except ContradictoryState:
                pass
        async with self._reader.turn:
            self._queries.settle_doubt(query)
            await self._reader.freshen()
            progress = await self._reader.start(query, settings)
            if not knows_newest_seal(progress):
                self._queries.forget(query)
                progress = await self._reader.start(query, settings)
            try:
                return judge_epoch(progress, epoch, fingerprint, self._id_of_table())
            except ContradictoryState:
                self._queries.forget(query)
                await self._reader.look_anew()
                return judge_epoch(await self._reader.start(query, settings), epoch, fingerprint, self._id_of_table())

    def _id_of_table(self) -> str:
        return "" if self._table.state is None else self._table.state.table_id

    async def _create(
        self, query: QueryId, epoch: Epoch, fingerprint: str | None, schema: str, settings: TableSettings
    ) -> EpochVerdict:
        """Creates the table. Somebody else may have been first, another driver of this query among them."""
        async with self._reader.turn:
            await self._table.create_if_missing(schema, settings, query)
            self._queries.see_marks()
        return await self._judge(query, epoch, fingerprint, settings)

    async def _admit(
        self, query: QueryId, epoch: Epoch, fingerprint: str | None, settings: TableSettings
    ) -> EpochVerdict:
        """Makes the table the query's. Another driver of the query may have been first, and have gone on."""
        async with self._reader.turn:
            await self._table.admit(query)
            self._queries.see_marks()
        return await self._judge(query, epoch, fingerprint, settings)

    def _backlog(self, query: QueryId, run: Run, offsets: EpochOffsets) -> Backlog:
        """Where the run stands against its backlog once the epoch is done; what the newest seal says of it goes on."""
        backlog = self._queries.latest(query, run).backlog
        if backlog is None:
            seal = self._queries.progress[query].newest_seal
            backlog = Backlog.from_json(None if seal is None else seal.backlog)
        if offsets.latest:
            backlog = backlog.resume(offsets.latest, offsets.planned)
        return backlog.after(offsets.planned)

    async def _put(
        self,
        query: QueryId,
        epoch: Epoch,
        reports: Sequence[Report | None],
        fingerprint: str | None,
        backlog: Backlog,
        run: Run,
    ) -> None:
        """Precondition: the epoch was judged fresh. Postcondition: its seal is durable and it is pending."""
        winners = winners_of(reports, query, epoch)
        await self._observer.before_seal(query, self._table.state)
        if self._queries.latest(query, run).ended:
            # It was stopped, and this is its last epoch.
            self._observer.run_ended(query)
        staged = reported(query, epoch, winners, reports)
        pending = pending_of(query, epoch, staged.manifests)
        # What does not fit as far as is known is refused while Spark would still run the epoch anew.
        try:
            await self._reader.check_fit([pending], run.asked_for, NOT_SEALED)
        except TableMadeAnew:
            # What the query has pending belongs into the message, too.
            async with self._reader.turn:
                self._queries.forget(query)
                await self._reader.start(query, run.asked_for)
            raise
        replaces = run.asked_for.replaces is not None
        totals = Totals.of(pending.files, replaces=replaces)
        await self._wait_for_room(query, totals, run)
        # While this one waited, another driver or a new run of the query may have moved on.
        if await self._judge(
            query, epoch, fingerprint, run.asked_for
        ) is EpochVerdict.REPEATED or self._queries.is_over(query, run):
            raise _out_of_date(query, epoch, "the epoch is not sealed: start the query again")
        progress = self._queries.move(query, Reported(epoch))
        self._queries.happened(query, Sealing())
        before, generation = progress.newest_seal, self._queries.generation(query)
        seal = Seal(
            query=query,
            epoch=epoch,
            winners=winners,
            previous=None if before is None else before.digest,
            table_id=self._table.known.table_id,
            fingerprint=fingerprint,
            sealed_ms=self._clock.wall_ms(),
            totals=totals,
            watermark_us=_watermark(None if before is None else before.watermark_us, staged, run.asked_for),
            backlog=backlog.to_json(),
            replaces=replaces,
        )
        body = codec.encode_seal(seal)
        path = layout.seal_path(query, epoch)
        outcome = await create_once(self._store, path, body, clock=self._clock, random=self._random)
        stored = StoredSeal(seal, codec.digest_of([body]))
        if not isinstance(outcome, Mine):
            # Somebody sealed this epoch before us: their attempts won, and ours have lost.
            stored, staged = await self._take_theirs(seal, outcome.body, run.asked_for)
        self._observer.sealed(stored)
        if self._queries.generation(query) != generation:
            self._queries.raise_failure(query)
            raise _out_of_date(query, epoch, "the epoch is sealed: start the query again, which commits it")
        if not self._table.is_done(query, epoch):
            self._queries.keep(query, epoch, staged.bodies)
        self._queries.move(query, Sealed(stored.as_sealed_epoch()))
        if not isinstance(outcome, Mine):
            # It may have been in a version that somebody wrote over, and compacted before: whoever reads it again sees.
            self._queries.doubt(query)

    async def _take_theirs(self, ours: Seal, body: bytes, settings: TableSettings) -> tuple[StoredSeal, Staged]:
        """The seal that is there in the place of ours, with its winners' manifests where it is not committed yet."""
        async with self._reader.turn:
            theirs = checked_seal(body, ours.query, ours.epoch)
            identity = self._table.identity(settings)
            if not identity.takes(theirs.seal):
                raise made_anew(self._store.location, theirs.seal.table_id, identity.table_id)
            _check_same_epoch(ours, theirs.seal)
            # It may be committed by now, and even released: after a look the marks decide. Whoever sleeps between the
            # look and the manifests may miss just that, so that what is missing is asked for a second time.
            for again in (False, True):
                await self._reader.look()
                if self._table.is_done(ours.query, ours.epoch):
                    break
                try:
                    return theirs, await read_manifests(self._store, theirs.seal)
                except CorruptState:
                    if again:
                        raise
            return theirs, Staged()

    async def _wait_for_room(self, query: QueryId, more: Totals, run: Run) -> None:
        """Back-pressure: until what is pending leaves room, which makes the committer commit, whatever the cadence."""

        def there_is_room() -> bool:
            queries = self._queries
            return (
                queries.is_over(query, run)
                or queries.has_failed(query)
                or (queries.knows(query) and has_room(queries.progress[query].load, more, run.pace))
            )

        self._queries.happened_in(query, run, Pressed(1))
        try:
            if not there_is_room():
                self._commit()
                await self._queries.changed.wait_until(there_is_room)
        finally:
            self._queries.happened_in(query, run, Pressed(-1))
        self._queries.raise_failure(query)


def _out_of_date(query: QueryId, epoch: Epoch, remedy: str) -> CommitFailed:
    return CommitFailed(f"the state of query {query} changed while its epoch {epoch} was being sealed; {remedy}")


def _watermark(before: int | None, staged: Staged, settings: TableSettings) -> int | None:
    """The query's watermark after an epoch."""
    by_task: dict[TaskId, list[DataFile]] = {}
    for manifest in staged.manifests:
        by_task.setdefault(manifest.attempt.task, []).extend(manifest.files)
    return advance(before, epoch_watermark(by_task.values(), settings.watermark_delay_us))


def _check_same_epoch(ours: Seal, theirs: Seal) -> None:
    """Raises if the epoch that another driver sealed first is not the one that we have run."""
    if theirs.previous != ours.previous:
        raise ContradictoryState(
            f"epoch {ours.epoch} of query {ours.query} was sealed by another driver, and the seal before it is not the "
            "one that this driver knows; nothing was committed; stop all but one driver of this query and start it "
            "again",
            entry="two-drivers",
        )
    if None not in (ours.fingerprint, theirs.fingerprint) and ours.fingerprint != theirs.fingerprint:
        raise ContradictoryState(
            f"epoch {ours.epoch} of query {ours.query} was sealed by another driver with other offsets: two "
            "checkpoints with one query id are in use; nothing was committed; stop the copy, or give it a new "
            "checkpointLocation",
            entry="two-drivers",
        )
