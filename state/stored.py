"""Seals and manifests as the store holds them: found, read, and checked each for itself.

What they say together, and against the table's marks, is for `replay`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol

from lakecommit.concurrency.parallel import in_parallel
from lakecommit.errors import ContradictoryState, CorruptState
from lakecommit.model import (
    BATCH_PREFIX,
    RELEASE_AGE_MS,
    Attempt,
    Epoch,
    Manifest,
    Pending,
    QueryId,
    Seal,
    SealedEpoch,
    Winner,
    is_batch,
)
from lakecommit.state import codec, layout
from lakecommit.state.chain import Link
from lakecommit.storage.base import Found, Get, GetRange, List, ObjectInfo

# Sorts after every name that lakecommit gives.
_LAST = "~"


class ReadState(Get, GetRange, List, Protocol):
    """The verbs that it takes to read the writers' state."""


@dataclass(frozen=True, slots=True)
class StoredSeal:
    """A seal and the digest of its stored bytes, which the next seal carries."""

    seal: Seal
    digest: bytes

    @property
    def link(self) -> Link:
        return Link(self.seal.epoch, self.digest, self.seal.previous)

    def as_sealed_epoch(self) -> SealedEpoch:
        seal = self.seal
        return SealedEpoch(
            seal.epoch,
            self.digest,
            seal.fingerprint,
            seal.sealed_ms,
            seal.totals,
            seal.watermark_us,
            seal.backlog,
            seal.table_id,
            replaces=seal.replaces,
        )


@dataclass(frozen=True, slots=True)
class Staged:
    """The manifests of an epoch's winners, as they are stored and as they read."""

    bodies: tuple[bytes, ...] = ()
    manifests: tuple[Manifest, ...] = ()

    @classmethod
    def joined(cls, winners: Iterable[Staged]) -> Staged:
        staged = list(winners)
        return cls(
            tuple(chain.from_iterable(each.bodies for each in staged)),
            tuple(chain.from_iterable(each.manifests for each in staged)),
        )

    def without(self, paths: Collection[str]) -> Staged:
        """The same without these files, as manifests of what is left."""
        left = [
            replace(each, files=tuple(file for file in each.files if file.path not in paths)) for each in self.manifests
        ]
        left = [each for each in left if each.files]
        return Staged(tuple(codec.encode_manifest(each) for each in left), tuple(left))


class ManifestMissing(CorruptState):
    """A manifest that the seal of `epoch` names is not there."""

    def __init__(self, path: str, epoch: Epoch) -> None:
        super().__init__(
            f"manifest {path} is missing, but the seal of epoch {epoch} names it: its files cannot be committed; "
            "restore it from a backup or a bucket version; nothing was deleted"
        )
        self.epoch = epoch


async def list_sealed_epochs(store: List, query: QueryId, after: Epoch | None = None) -> list[Epoch]:
    """Epochs that have a seal, in order, those after `after`."""
    epochs = []
    start = None if after is None else layout.seal_path(query, after)
    async for page in store.list(layout.seals_prefix(query), start_after=start):
        for info in page:
            parsed = layout.parse_seal_path(info.path)
            if parsed is not None:
                epochs.append(parsed[1])
    return epochs


async def list_epochs_after(store: List, query: QueryId, own: Epoch | None) -> list[Epoch]:
    """Epochs after the own mark that have a seal, in order; where there is none, the one of the own mark, which is
    usually the newest. One listing."""
    return _after(own, await list_sealed_epochs(store, query, Epoch(own - 1) if own else None))


async def epochs_after(store: List, query: QueryId, own: Epoch | None) -> list[Epoch]:
    """The same; where that of the own mark has none either, the newest that has one. That is another listing."""
    found = await list_epochs_after(store, query, own)
    return found or (_after(own, await list_sealed_epochs(store, query)) if own else [])


def _after(own: Epoch | None, epochs: list[Epoch]) -> list[Epoch]:
    return [epoch for epoch in epochs if own is None or epoch > own] or epochs[-1:]


async def seals_after(store: ReadState, query: QueryId, own: Epoch | None) -> list[StoredSeal]:
    """The seals after the own mark, in order; where there is none, the newest of all."""
    return await in_parallel(lambda epoch: read_seal(store, query, epoch), await epochs_after(store, query, own))


async def read_seal(store: Get, query: QueryId, epoch: Epoch) -> StoredSeal:
    stored = await find_seal(store, query, epoch)
    if stored is None:
        path = layout.seal_path(query, epoch)
        raise CorruptState(f"seal {path} is missing; restore it from a backup or a bucket version; nothing was deleted")
    return stored


async def find_seal(store: Get, query: QueryId, epoch: Epoch) -> StoredSeal | None:
    """The same where the seal may have gone away since it was listed."""
    found = await store.get(layout.seal_path(query, epoch))
    return checked_seal(found.body, query, epoch) if isinstance(found, Found) else None


def checked_seal(body: bytes, query: QueryId, epoch: Epoch) -> StoredSeal:
    """The seal in `body`, which must be the one of its name."""
    path = layout.seal_path(query, epoch)
    seal = codec.decode_seal(body, path)
    if (seal.query, seal.epoch) != (query, epoch):
        raise CorruptState(
            f"seal {path} is of epoch {seal.epoch} of {seal.query}: it was copied from elsewhere; restore the right one"
        )
    return StoredSeal(seal, codec.digest_of([body]))


async def read_pending(store: Get, seal: Seal) -> Pending:
    """The files of the winners of `seal`, from their manifests: present, intact, as many as the seal says."""
    return pending_of(seal.query, seal.epoch, (await read_manifests(store, seal)).manifests)


async def read_manifests(store: Get, seal: Seal) -> Staged:
    return Staged.joined(await in_parallel(lambda winner: winner_manifests(store, seal, winner), seal.winners))


async def winner_manifests(store: Get, seal: Seal, winner: Winner) -> Staged:
    attempt = Attempt(seal.query, seal.epoch, winner.task, winner.attempt)
    bodies = []
    for number in range(winner.manifests):
        path = layout.manifest_path(attempt, number)
        found = await store.get(path)
        if not isinstance(found, Found):
            raise ManifestMissing(path, seal.epoch)
        bodies.append(found.body)
    return checked_manifests(attempt, winner, bodies)


def checked_manifests(attempt: Attempt, winner: Winner, bodies: Sequence[bytes]) -> Staged:
    """The manifests in `bodies`, which must be exactly those that the seal's winner names."""
    if len(bodies) != winner.manifests or codec.digest_of(bodies) != winner.digest:
        raise CorruptState(
            f"the manifests of task {attempt.task}, attempt {attempt.id} in epoch {attempt.epoch} are not those that "
            "were sealed; restore them from a backup or a bucket version; nothing was committed or deleted"
        )
    manifests = tuple(checked_manifest(body, attempt, number) for number, body in enumerate(bodies))
    return Staged(tuple(bodies), manifests)


def checked_manifest(body: bytes, attempt: Attempt, number: int) -> Manifest:
    """The manifest in `body`, which must be the one of its name."""
    name = layout.manifest_path(attempt, number)
    manifest = codec.decode_manifest(body, name)
    if (manifest.attempt, manifest.number) != (attempt, number):
        raise CorruptState(
            f"manifest {name} is of {manifest.attempt}: it was copied from elsewhere; restore the right one"
        )
    return manifest


def pending_of(query: QueryId, epoch: Epoch, manifests: Sequence[Manifest]) -> Pending:
    """What the winners of an epoch wrote, from their manifests."""
    plans = {manifest.plan for manifest in manifests}
    if len(plans) > 1:
        raise ContradictoryState(f"tasks of epoch {epoch} of {query} were written by {len(plans)} different plans")
    return Pending(query, epoch, next(iter(plans), None), tuple(file for each in manifests for file in each.files))


@dataclass(frozen=True, slots=True)
class NamedManifest:
    """A manifest as a listing shows it."""

    attempt: Attempt
    number: int
    modified_ms: int

    @property
    def path(self) -> str:
        return layout.manifest_path(self.attempt, self.number)

    def is_old(self, now_ms: int) -> bool:
        """Whether its attempt has long given up uploading. The slack is for clocks that differ."""
        return now_ms - self.modified_ms > RELEASE_AGE_MS


@dataclass(frozen=True, slots=True)
class NamedSeal:
    query: QueryId
    epoch: Epoch

    @property
    def path(self) -> str:
        return layout.seal_path(self.query, self.epoch)


async def list_of_all_queries(store: List) -> AsyncIterator[Sequence[NamedManifest | NamedSeal | ObjectInfo]]:
    """What all queries have below the table, ordered by path, page by page; what is neither, as it is listed."""
    async for page in store.list(layout.queries_prefix()):
        yield [_named(info) for info in page]


def _named(info: ObjectInfo) -> NamedManifest | NamedSeal | ObjectInfo:
    if manifest := layout.parse_manifest_path(info.path):
        return NamedManifest(*manifest, info.modified_ms)
    seal = layout.parse_seal_path(info.path)
    return info if seal is None else NamedSeal(*seal)


async def list_manifests(
    store: List, query: QueryId, after: Epoch | None = None, last: Epoch | None = None
) -> dict[Epoch, list[NamedManifest]]:
    """The manifests of `query` by epoch, in order, of epochs after `after` and up to `last`. Names that are not of this
    grammar are nobody's to touch."""
    start = None if after is None else f"{layout.writers_prefix(query, after)}/{_LAST}"
    found: dict[Epoch, list[NamedManifest]] = {}
    async for page in store.list(layout.writers_prefix(query), start_after=start):
        for named in map(_named, page):
            if isinstance(named, NamedManifest):
                epoch = named.attempt.epoch
                if last is not None and epoch > last:
                    return found
                found.setdefault(epoch, []).append(named)
    return found


async def stored_queries(store: List, *, batches: bool = True) -> AsyncIterator[QueryId]:
    """Every query that has state below the table, ordered by name.

    Each costs one page of a listing, whatever there is below it. Without `batches`, batch writes are left out, and one
    page is spent on all of them.
    """
    prefix = layout.queries_prefix()
    after: str | None = None
    while (path := await _first_path(store, prefix, after)) is not None:
        name = path.removeprefix(f"{prefix}/").partition("/")[0]
        skipped = not batches and is_batch(QueryId(name))
        last = f"{prefix}/{BATCH_PREFIX}{_LAST}" if skipped else f"{prefix}/{name}/{_LAST}"
        # A name that somebody else gave may sort after the last of ours.
        after = max(path, last)
        if not skipped and (query := layout.parse_query(path)):
            yield query


async def _first_path(store: List, prefix: str, after: str | None) -> str | None:
    async for page in store.list(prefix, start_after=after):
        for info in page:
            return info.path
    return None
