"""The objects that cleaning is about: manifests and the files that they name, listed, read and deleted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lakecommit.concurrency.parallel import in_parallel
from lakecommit.errors import CorruptState
from lakecommit.formats.base import Testify
from lakecommit.model import Manifest, QueryId
from lakecommit.state import layout
from lakecommit.state.stored import NamedManifest, checked_manifest
from lakecommit.storage.base import Delete, Found, Get, List


class CleanStore(Get, List, Delete, Protocol):
    """The verbs that cleaning takes."""


@dataclass(frozen=True, slots=True)
class NamedFile:
    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """The files that manifests name, and why some of the manifests cannot be read."""

    files: Mapping[NamedManifest, Sequence[NamedFile]] = field(default_factory=dict)
    damaged: Mapping[NamedManifest, str] = field(default_factory=dict)

    @property
    def paths(self) -> list[str]:
        return [file.path for files in self.files.values() for file in files]

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for files in self.files.values() for file in files)

    def without(self, paths: Collection[str]) -> NamedFiles:
        kept = {named: [file for file in files if file.path not in paths] for named, files in self.files.items()}
        return NamedFiles(kept, self.damaged)

    def together_with(self, other: NamedFiles) -> NamedFiles:
        return NamedFiles({**self.files, **other.files}, {**self.damaged, **other.damaged})


@dataclass(frozen=True, slots=True)
class Deleted:
    """What is gone for certain, and the manifests that are still there, or may be."""

    files: int
    manifests: int
    manifests_left: Collection[NamedManifest]
    unconfirmed: int


async def last_written_ms(store: List, query: QueryId) -> int:
    """When the newest object of a query's state was written; 0 where there is none."""
    newest = 0
    async for page in store.list(layout.query_prefix(query)):
        newest = max(newest, *(info.modified_ms for info in page))
    return newest


async def read_files(store: Get, manifests: Sequence[NamedManifest]) -> NamedFiles:
    """What the manifests name. One that went away meanwhile names nothing any more."""

    async def read(named: NamedManifest) -> Manifest | str | None:
        try:
            found = await store.get(named.path)
            return checked_manifest(found.body, named.attempt, named.number) if isinstance(found, Found) else None
        except CorruptState as error:
            return str(error)

    answers = await in_parallel(read, manifests)
    files: dict[NamedManifest, Sequence[NamedFile]] = {}
    damaged: dict[NamedManifest, str] = {}
    for named, answer in zip(manifests, answers, strict=True):
        if isinstance(answer, str):
            damaged[named] = answer
        elif answer is not None:
            files[named] = [NamedFile(file.path, file.size_bytes) for file in answer.files]
    return NamedFiles(files, damaged)


async def without_the_tables(table_format: Testify, found: NamedFiles) -> NamedFiles:
    """The files that the log does not name: the others are the table's, whatever else is known of them."""
    if not found.paths:
        return found
    return found.without(await table_format.named(found.paths))


async def delete(store: Delete, lost: NamedFiles, manifests: Sequence[NamedManifest]) -> Deleted:
    """Deletes the lost files, then `manifests`, but for those that name a file whose deletion is not confirmed."""
    paths = lost.paths
    files_left = set(await store.delete(paths)) if paths else set()
    kept = {named for named, files in lost.files.items() if any(file.path in files_left for file in files)}
    going = {named.path: named for named in manifests if named not in kept}
    unconfirmed = await store.delete(list(going)) if going else ()
    left = {going[path] for path in unconfirmed} | {named for named in manifests if named in kept}
    return Deleted(
        files=len(paths) - len(files_left),
        manifests=len(going) - len(unconfirmed),
        manifests_left=left,
        unconfirmed=len(files_left) + len(unconfirmed),
    )
