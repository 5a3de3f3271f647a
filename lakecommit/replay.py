"""The writers' state, read back: seals after a mark and the manifests of their winners.

Order of reads: the caller has read the marks before; then seals, then manifests. A snapshot that lands in between can
only make an epoch look pending that is done, which the next look at the marks corrects before anything is committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lakecommit.committer import SealedEpoch
from lakecommit.errors import ContradictoryState, CorruptState
from lakecommit.model import Attempt, CommitUser, DataFile, Epoch, Manifest, Marks, Pending, Seal, Winner
from lakecommit.state import codec, layout
from lakecommit.storage.base import Found, Get, List

OBJECTS_IN_FLIGHT = 16


class ReadState(Get, List, Protocol):
    """The verbs that a replay needs."""


@dataclass(frozen=True, slots=True)
class StoredSeal:
    """A seal and the digest of its stored bytes, which the next seal carries."""

    seal: Seal
    digest: bytes

    def as_sealed_epoch(self) -> SealedEpoch:
        empty = all(winner.manifests == 0 for winner in self.seal.winners)
        return SealedEpoch(self.seal.epoch, self.digest, self.seal.offsets, empty)


@dataclass(frozen=True, slots=True)
class Replay:
    """What the store holds of a query: the newest seal, and the seals after the own mark with their files."""

    newest_seal: SealedEpoch | None
    pending: tuple[SealedEpoch, ...]
    files: tuple[Pending, ...]


async def replay(store: ReadState, user: CommitUser, marks: Marks, table_id: str) -> Replay:
    """Reads what is pending for `user` in a table whose marks are `marks`.

    Raises `ContradictoryState` where a seal with rows lies between the own mark and the mark (somebody else's sink went
    past it) or belongs to another table, `CorruptState` where a seal or a winner's manifest is missing or damaged.
    """
    epochs = await _sealed_epochs(store, user, marks.own)
    after = [epoch for epoch in epochs if marks.own is None or epoch > marks.own]
    stored = await _in_parallel([read_seal(store, user, epoch) for epoch in (after or epochs[-1:])])
    newest = stored[-1].as_sealed_epoch() if stored else None
    if not after:
        return Replay(newest, (), ())
    for each in stored:
        check_table(each.seal, table_id)
    _check_not_passed(user, [each.seal for each in stored], marks.mark)
    pending = [each for each in stored if marks.mark is None or each.seal.epoch > marks.mark]
    files = [await read_pending(store, each.seal) for each in pending]
    return Replay(newest, tuple(each.as_sealed_epoch() for each in pending), tuple(files))


async def read_seal(store: Get, user: CommitUser, epoch: Epoch) -> StoredSeal:
    path = layout.seal_path(user, epoch)
    found = await store.get(path)
    if not isinstance(found, Found):
        raise CorruptState(f"seal {path} is missing; restore it from a backup or a bucket version; nothing was deleted")
    return checked_seal(found.body, user, epoch)


def checked_seal(body: bytes, user: CommitUser, epoch: Epoch) -> StoredSeal:
    """The seal in `body`, which must be the one of its name."""
    path = layout.seal_path(user, epoch)
    seal = codec.decode_seal(body, path)
    if (seal.user, seal.epoch) != (user, epoch):
        raise CorruptState(
            f"seal {path} is of epoch {seal.epoch} of {seal.user}: it was copied from elsewhere; restore the right one"
        )
    return StoredSeal(seal, codec.digest_of([body]))


def check_same_epoch(ours: Seal, theirs: Seal) -> None:
    """Raises where the epoch that another driver sealed first is not the one that we have run."""
    if theirs.previous != ours.previous:
        raise ContradictoryState(
            f"epoch {ours.epoch} of query {ours.user} was sealed by another driver after another history of seals; "
            "nothing was committed; stop all but one driver of this query and start it again"
        )
    if ours.offsets is not None and theirs.offsets is not None and ours.offsets != theirs.offsets:
        raise ContradictoryState(
            f"epoch {ours.epoch} of query {ours.user} was sealed by another driver with other offsets: two checkpoints "
            "with one query id are in use; nothing was committed; stop the copy, or give it a new checkpointLocation"
        )


def check_table(seal: Seal, table_id: str) -> None:
    if seal.table_id != table_id:
        raise ContradictoryState(
            f"epoch {seal.epoch} of query {seal.user} was sealed for the table with id {seal.table_id}, but the table "
            f"here has id {table_id}: it was replaced or recreated; nothing was committed; start the query with a new "
            "checkpointLocation"
        )


async def read_pending(store: Get, seal: Seal) -> Pending:
    """The files of the winners of `seal`, from their manifests: present, intact, as many as the seal says."""
    slots = asyncio.Semaphore(OBJECTS_IN_FLIGHT)

    async def winner_manifests(winner: Winner) -> list[Manifest]:
        attempt = Attempt(seal.user, seal.epoch, winner.task, winner.attempt)
        return checked_manifests(attempt, winner, [await read(attempt, n) for n in range(winner.manifests)])

    async def read(attempt: Attempt, number: int) -> bytes:
        async with slots:
            path = layout.manifest_path(attempt, number)
            found = await store.get(path)
        if not isinstance(found, Found):
            raise CorruptState(
                f"manifest {path} is missing, but the seal of epoch {seal.epoch} names it: its files cannot be "
                "committed; restore it from a backup or a bucket version; nothing was deleted"
            )
        return found.body

    manifests = await asyncio.gather(*(winner_manifests(winner) for winner in seal.winners))
    return pending_of(seal, [manifest for group in manifests for manifest in group])


def checked_manifests(attempt: Attempt, winner: Winner, bodies: Sequence[bytes]) -> list[Manifest]:
    """The manifests in `bodies`, which must be exactly those that the seal's winner names."""
    if len(bodies) != winner.manifests or codec.digest_of(bodies) != winner.digest:
        raise CorruptState(
            f"the manifests of task {attempt.task}, attempt {attempt.id} in epoch {attempt.epoch} are not those that "
            "were sealed; restore them from a backup or a bucket version; nothing was committed or deleted"
        )
    manifests = []
    for number, body in enumerate(bodies):
        name = layout.manifest_path(attempt, number)
        manifest = codec.decode_manifest(body, name)
        if (manifest.attempt, manifest.number) != (attempt, number):
            raise CorruptState(f"manifest {name} is of {manifest.attempt}: it was copied from elsewhere")
        manifests.append(manifest)
    return manifests


def pending_of(seal: Seal, manifests: Sequence[Manifest]) -> Pending:
    plans = {manifest.plan for manifest in manifests}
    if len(plans) > 1:
        raise ContradictoryState(
            f"tasks of epoch {seal.epoch} of {seal.user} were written by {len(plans)} different plans"
        )
    files: list[DataFile] = [file for manifest in manifests for file in manifest.files]
    return Pending(seal.user, seal.epoch, next(iter(plans), None), tuple(files))


async def _sealed_epochs(store: List, user: CommitUser, own: Epoch | None) -> list[Epoch]:
    """Epochs that have a seal, in order, from the one of the own mark on: that one is usually the newest."""
    if own:
        epochs = await _list_epochs(store, user, layout.seal_path(user, Epoch(own - 1)))
        if epochs:
            return epochs
    return await _list_epochs(store, user, None)


async def _in_parallel(reads: Sequence[Coroutine[Any, Any, StoredSeal]]) -> list[StoredSeal]:
    slots = asyncio.Semaphore(OBJECTS_IN_FLIGHT)

    async def one(read: Coroutine[Any, Any, StoredSeal]) -> StoredSeal:
        async with slots:
            return await read

    return await asyncio.gather(*(one(read) for read in reads))


async def _list_epochs(store: List, user: CommitUser, start_after: str | None) -> list[Epoch]:
    epochs = []
    async for page in store.list(layout.seals_prefix(user), start_after=start_after):
        for info in page:
            parsed = layout.parse_seal_path(info.path)
            if parsed is not None:
                epochs.append(parsed[1])
    return epochs


def _check_not_passed(user: CommitUser, seals: Sequence[Seal], mark: Epoch | None) -> None:
    passed = [s.epoch for s in seals if mark is not None and s.epoch <= mark and any(w.manifests for w in s.winners)]
    if passed:
        raise ContradictoryState(
            f"epochs {passed[:20]} of query {user} are sealed and not committed by lakecommit, but the mark is at "
            f"{mark}: another sink went past them. Rows that it did not write itself are missing from the table; "
            "their files are kept; nothing was committed. Compare the table with the source, then start with a new "
            "checkpointLocation"
        )
