"""The writers' state, read back: seals after a mark and the manifests of their winners.

Order of reads: the caller has read the marks before; then seals, then manifests. A snapshot that lands in between can
only make an epoch look pending that is done, which the next look at the marks corrects before anything is committed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from lakecommit.commands import command
from lakecommit.concurrency.parallel import in_parallel
from lakecommit.errors import ContradictoryState
from lakecommit.formats.base import Testify
from lakecommit.model import AttemptId, Epoch, Marks, Pending, QueryId, Seal, SealedEpoch, own_mark_id
from lakecommit.progress.epochs import check_dense
from lakecommit.progress.table import Identity
from lakecommit.restarting.made_anew import another_table
from lakecommit.state.chain import first_break
from lakecommit.state.stored import (
    ReadState,
    Staged,
    StoredSeal,
    epochs_after,
    pending_of,
    read_pending,
    read_seal,
    winner_manifests,
)
from lakecommit.storage.base import Get

# A log that was cleaned up may have held what is older than this.
CLEANED_UP_AFTER_MS = 24 * 60 * 60 * 1000
# How many pending files are read back at a time.
WINDOW_FILES = 5000
# For how many pending files the log is asked at a time; each time it is read as far back as it goes.
FILES_ASKED = 50_000
# How many winners are kept from when their seals are checked until their manifests are read.
WINNERS_IN_MEMORY = 20_000


@dataclass(frozen=True, slots=True)
class Replay:
    """What the store holds of a query: the newest seal, and the seals after the own mark."""

    newest_seal: SealedEpoch | None
    pending: tuple[SealedEpoch, ...]


class Keep(Protocol):
    def __call__(self, query: QueryId, epoch: Epoch, manifests: Sequence[bytes]) -> None:
        """Takes the manifests of a pending epoch's winners, as they are stored. Epochs come in order."""


async def replay(
    store: ReadState,
    table_format: Testify,
    query: QueryId,
    marks: Marks,
    identity: Identity,
    now_ms: int,
    keep: Keep,
    given_up: Collection[Epoch] = (),
    head: int = -1,
) -> Replay:
    """Reads what is pending for `query` in a table whose marks are `marks`; `keep` gets the manifests.

    An epoch may have been in a version, up to `head`, that somebody has written over since, and with it the mark: then
    others may have compacted its files meanwhile. Of those they are not added again.

    Of winners and manifests only some are in memory at a time, however many are pending. Epochs of `given_up` are kept
    without any. Raises `ContradictoryState` if a seal with rows lies between the own mark and the mark (somebody
    else's sink went past it), belongs to another table or another chain, or where its files were in the table before
    the mark expired; `CorruptState` where a seal or a winner's manifest is missing or damaged. Whether the files are
    there is asked before they are committed.
    """
    seals = _Seals(store, query)
    stored = await seals.read_after(marks.own)
    newest = stored[-1].as_sealed_epoch() if stored else None
    after = [each for each in stored if marks.own is None or each.seal.epoch > marks.own]
    pending = [each for each in after if marks.mark is None or each.seal.epoch > marks.mark]
    # First of all: in another table nothing else means what it seems to.
    refused = next((each.seal for each in stored if not identity.takes(each.seal)), None)
    if refused is not None:
        raise await another_table(
            store, table_format.location, identity.table_id, query, refused.table_id, await seals.whole(pending)
        )
    _check_chain(query, stored)
    passed = await seals.whole(after[: len(after) - len(pending)])
    await check_not_passed(store, table_format, query, marks, passed)
    sealed = tuple(each.as_sealed_epoch() for each in pending)
    if marks == Marks() or marks.expired:
        # First: the epochs before may have been released, which is no damage.
        await _check_never_held(table_format, query, seals, pending, now_ms)
        if not identity.anew:
            _check_mark_not_missing(table_format, query, marks, sealed)
    check_dense(query, marks, sealed, anew=identity.anew)
    taken = await _Taken.since(table_format, head, marks, query, pending)
    kept: list[SealedEpoch] = []
    for window in _windows(pending, WINDOW_FILES):
        whole = [_without_winners(each) if each.seal.epoch in given_up else each for each in await seals.whole(window)]
        read = await _read_window(store, whole)
        for each, all_of_it, left in zip(whole, read, await taken.without(read), strict=True):
            # One that replaces the table removes what others have made of its files.
            staged = all_of_it if each.seal.replaces else left
            is_given_up = each.seal.epoch in given_up
            files = pending_of(query, each.seal.epoch, staged.manifests)
            # An epoch that is given up is one with files all the same: its version says that they are left out.
            totals = each.seal.totals if is_given_up or each.seal.replaces else files.totals
            keep(query, each.seal.epoch, staged.bodies)
            kept.append(
                replace(
                    each.as_sealed_epoch(),
                    totals=totals,
                    in_part=totals != each.seal.totals,
                    replaces=each.seal.replaces and not is_given_up,
                )
            )
    return Replay(newest, tuple(kept))


@dataclass(frozen=True, slots=True)
class _Taken:
    """Which files of pending epochs the log names all the same. `names` is None where it is asked for each of them."""

    table_format: Testify
    names: frozenset[str] | None

    @classmethod
    async def since(
        cls, table_format: Testify, head: int, marks: Marks, query: QueryId, pending: Sequence[StoredSeal]
    ) -> _Taken:
        with_files = [each.seal.sealed_ms for each in pending if each.seal.totals.files]
        if not with_files or head < 0:
            return cls(table_format, frozenset())
        return cls(table_format, await table_format.removed_since(head, marks, query, min(with_files)))

    async def without(self, window: Sequence[Staged]) -> list[Staged]:
        paths = [file.path for staged in window for manifest in staged.manifests for file in manifest.files]
        if self.names is None:
            named = await self.table_format.ever_named_files(paths)
        else:
            named = frozenset(path for path in paths if path.rpartition("/")[2] in self.names)
        return [staged.without(named) for staged in window] if named else list(window)


def _windows(pending: Sequence[StoredSeal], limit: int) -> Iterator[Sequence[StoredSeal]]:
    """The seals in order, in groups that have no more files than `limit`, or are one epoch."""
    window: list[StoredSeal] = []
    files = 0
    for each in pending:
        files += each.seal.totals.files
        if window and files > limit:
            yield window
            window, files = [], each.seal.totals.files
        window.append(each)
    if window:
        yield window


async def _read_window(store: Get, window: Sequence[StoredSeal]) -> list[Staged]:
    winners = [(each.seal, winner) for each in window for winner in each.seal.winners]
    read = iter(await in_parallel(lambda pair: winner_manifests(store, *pair), winners))
    return [Staged.joined(next(read) for _ in each.seal.winners) for each in window]


class _Seals:
    """A query's seals. Only some of their winners are in memory; where others are needed, a seal is read again."""

    def __init__(self, store: ReadState, query: QueryId) -> None:
        self._store, self._query, self._room = store, query, WINNERS_IN_MEMORY
        self._held: dict[Epoch, StoredSeal] = {}

    async def read_after(self, own: Epoch | None) -> list[StoredSeal]:
        """The seals after the own mark, in order, without their winners; where there is none, the newest of all."""
        return await in_parallel(self._read, await epochs_after(self._store, self._query, own))

    async def whole(self, stored: Sequence[StoredSeal]) -> list[StoredSeal]:
        """The same seals with their winners. Raises if one is not what it was when it was read first."""
        return await in_parallel(self._whole, stored)

    async def _read(self, epoch: Epoch) -> StoredSeal:
        stored = await self._read_whole(epoch)
        if len(stored.seal.winners) <= self._room:
            self._room -= len(stored.seal.winners)
            self._held[epoch] = stored
        return _without_winners(stored)

    async def _whole(self, stored: StoredSeal) -> StoredSeal:
        epoch = stored.seal.epoch
        whole = self._held.get(epoch) or await self._read_whole(epoch)
        if whole.digest != stored.digest:
            raise ContradictoryState(
                f"the seal of epoch {epoch} of query {self._query} changed while it was read: another driver of the "
                "query is at work; nothing was committed; stop all but one and start the query again",
                entry="two-drivers",
            )
        return whole

    async def _read_whole(self, epoch: Epoch) -> StoredSeal:
        """The seal with those winners that have manifests."""
        stored = await read_seal(self._store, self._query, epoch)
        winners = tuple(winner for winner in stored.seal.winners if winner.manifests)
        return replace(stored, seal=replace(stored.seal, winners=winners))


def _without_winners(stored: StoredSeal) -> StoredSeal:
    return replace(stored, seal=replace(stored.seal, winners=()))


async def passed_epochs(
    store: Get, table_format: Testify, query: QueryId, marks: Marks, after: Sequence[StoredSeal]
) -> list[Pending]:
    """The epochs of seals after the own mark that somebody else's sink went past, and that are not in the table.

    They may be in it where it is the own mark that has expired: then the log shows their files or, where those were
    rewritten since, the own mark as it was.
    """
    seals = [each.seal for each in after if marks.mark is not None and each.seal.epoch <= marks.mark]
    # What replaced the table was replaced in turn.
    seals = [seal for seal in seals if seal.totals.files and not seal.replaces]
    if seals and marks.own is None:
        once = max(await table_format.marks_after(own_mark_id(query), -1) or (), default=-1)
        seals = [seal for seal in seals if seal.epoch > once]
    if not seals:
        return []
    held = (await table_format.ever_named(_winners(seals))).attempts
    return [await read_pending(store, seal) for seal in seals if held.isdisjoint(_winners([seal]))]


def _winners(seals: Sequence[Seal]) -> list[AttemptId]:
    return [winner.attempt for seal in seals for winner in seal.winners if winner.manifests]


async def check_not_passed(
    store: Get, table_format: Testify, query: QueryId, marks: Marks, after: Sequence[StoredSeal]
) -> None:
    passed = [each.epoch for each in await passed_epochs(store, table_format, query, marks, after)]
    if passed:
        raise ContradictoryState(
            f"epochs {passed[:20]} of query {query} are sealed and not committed by lakecommit, but the mark is at "
            f"{marks.mark}: another sink went past them, and their rows may be missing from the table; their files are "
            "kept; nothing was committed. Commit what is missing, then start the query again: "
            f"{command('recover', table_format.location, '--query', query, '--apply')}",
            entry="passed-by-another-sink",
        )


def _check_chain(query: QueryId, stored: Sequence[StoredSeal]) -> None:
    if pair := first_break([each.link for each in stored]):
        before, after = pair
        raise ContradictoryState(
            f"the seal of epoch {after.epoch} of query {query} does not follow the one of epoch {before.epoch}: the "
            "state under _lakecommit is a mix of two histories; nothing was committed; restore all of it from one "
            "backup"
        )


def _check_mark_not_missing(
    table_format: Testify, query: QueryId, marks: Marks, pending: Sequence[SealedEpoch]
) -> None:
    """Epochs before the first seal were released, which is done once they are in the table, with a mark."""
    location, expected = table_format.location, 0 if marks.mark is None else marks.mark + 1
    if pending and pending[0].epoch > expected:
        raise ContradictoryState(
            f"epochs {[each.epoch for each in pending][:20]} of query {query} are sealed and not in the table, and "
            "those before are released, but the table's mark for them is gone: the table expires marks "
            f"({table_format.mark_retention}) and the query was off for longer; nothing was committed; save their "
            f"files ({command('recover', location, '--query', query, '--export', 'DIR')}) and append them, drop the "
            f"epochs ({command('recover', location, '--query', query, '--discard')}), start the query with a new "
            "checkpointLocation from the offsets that follow, and unset the property",
            entry="marks-expired",
        )


async def _check_never_held(
    table_format: Testify, query: QueryId, seals: _Seals, pending: Sequence[StoredSeal], now_ms: int
) -> None:
    """Seals after a mark that the table does not have: never committed, unless it has forgotten later ones.

    The log can tell.
    """
    whole = True
    for window in _windows([each for each in pending if each.seal.totals.files], FILES_ASKED):
        staged = [each.seal for each in await seals.whole(window)]
        log = await table_format.ever_named(_winners(staged))
        whole = whole and log.whole
        held = [seal.epoch for seal in staged if not log.attempts.isdisjoint(_winners([seal]))]
        if held:
            raise ContradictoryState(
                f"epochs {held[:20]} of query {query} are in the table, but its mark is not: the table expires marks "
                f"({table_format.mark_retention}) and the query was off for longer, or another writer wrote "
                "over the version that set it; nothing was committed; start the query with a new checkpointLocation "
                "from the offsets that follow, and unset the property",
                entry="marks-expired",
            )
    if not whole and now_ms - pending[0].seal.sealed_ms > CLEANED_UP_AFTER_MS:
        raise ContradictoryState(
            f"epoch {pending[0].seal.epoch} of query {query} was sealed over a day ago, its mark is not in the table, "
            "and the log no longer goes back so far: whether it was committed cannot be known; nothing was committed; "
            f"save its files ({command('recover', table_format.location, '--query', query, '--export', 'DIR')}), look "
            "for their rows in the table, append what is missing, and start the query with a new checkpointLocation",
            entry="marks-expired",
        )
