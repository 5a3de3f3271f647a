"""Finds out which files may go: from the versions of the log, and where it is asked for from a listing of the table.

manifests      first: a file that is named here later, and no more, is committed by then, and the log says so
log            the versions, in order, and what is live in the version that they follow
table          last: what is uploaded from here on is too young to be taken for nobody's
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from lakecommit.concurrency.parallel import in_parallel
from lakecommit.errors import UnsupportedTable
from lakecommit.formats.vacuuming import Kind, LogToVacuum, Named, Vacuum
from lakecommit.state.stored import NamedManifest, checked_manifest, list_of_all_queries
from lakecommit.storage.base import Found, Get, List, ObjectInfo
from lakecommit.vacuuming.candidates import Candidates
from lakecommit.vacuuming.progress import Progress
from lakecommit.vacuuming.sparing import is_spared


class ListedStore(Get, List, Protocol):
    """The verbs that it takes to find manifests and files."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What was removed after `swept` and up to `last` may go. Files that nobody names may if they are older than
    `orphans_before_ms`, by the store's clock; None: nobody looks for them. Columns are in lower case."""

    swept: int
    last: int
    partition_columns: Collection[str]
    orphans_before_ms: int | None = None


def last_old(log: LogToVacuum, before_ms: int | None) -> int:
    """The version that was the newest at `before_ms`, as far as the log goes back; the newest of all where that is
    None. Pure.

    A version ends with the next one. So it is the one before the first that is younger: clocks may go back, versions do
    not. The first version of a table removes nothing, so that none is lower.
    """
    young = (each.version for each in log.versions if before_ms is not None and each.info.modified_ms > before_ms)
    return max(0, next(young, log.newest + 1) - 1)


def missing_versions(log: LogToVacuum, swept: int) -> tuple[int, int] | None:
    """The versions that nobody knows any more what they removed, and that no vacuum has swept; None where none are."""
    return (swept + 1, log.begins - 1) if log.begins > swept + 1 else None


async def gather_staged(store: ListedStore, candidates: Candidates, progress: Progress) -> None:
    """The files that manifests name: of epochs that wait for their commit, of attempts that run, and of those that have
    lost.

    Raises `CorruptState` if one cannot be read, and `UnsupportedTable` if one is not understood: its files would
    look like nobody's.
    """

    async def staged(named: NamedManifest) -> list[str]:
        answer = await store.get(named.path)
        # It is gone with its files, or committed.
        manifest = checked_manifest(answer.body, named.attempt, named.number) if isinstance(answer, Found) else None
        return [] if manifest is None else [file.path for file in manifest.files]

    progress.begin("reading manifests", None)
    async for page in list_of_all_queries(store):
        manifests = [each for each in page if isinstance(each, NamedManifest)]
        for each in page:
            if isinstance(each, ObjectInfo) and "/writers/" in each.path:
                raise UnsupportedTable(
                    f"{each.path} is no manifest that this release understands: a newer lakecommit may name files in "
                    "it, so that nothing is deleted. Use the release that put it there, or delete it if none did"
                )
        for paths in await in_parallel(staged, manifests):
            candidates.staged(paths)
        progress.advance(len(manifests))


async def gather_logged(
    table_format: Vacuum, log: LogToVacuum, limits: Limits, candidates: Candidates, progress: Progress
) -> None:
    """What the versions of `log` have removed, without what is live again."""
    reading = _Reading(log, limits, candidates)
    if missing_versions(log, limits.swept):
        progress.begin("reading what the checkpoint says was removed", None)
        async for page in table_format.forgotten_names(log):
            progress.advance(len(page))
            # No later than what is live in the base was written: it may have got vectors since.
            reading.take(page, min(log.begins, log.base))
        candidates.version_ends()
    progress.begin("reading versions", len(log.versions))
    current = -1
    async for version, page in table_format.names(log.versions):
        if version != current:
            candidates.version_ends()
            progress.advance()
            current = version
        reading.take(page, version)
    candidates.version_ends()
    if limits.orphans_before_ms is not None or (not log.whole and candidates.any_up_to(limits.last)):
        progress.begin("reading live files", None)
        async for page in table_format.live_names(log):
            progress.advance(len(page))
            reading.take_base(page)
    # The version after those that are missing is old enough where they are.
    candidates.gone_since(log.begins)
    candidates.keep_used()
    candidates.keep_up_to(limits.swept)


async def gather_listed(
    store: ListedStore, log: LogToVacuum, limits: Limits, candidates: Candidates, progress: Progress
) -> None:
    """Old files that no version names which is there, nor a manifest.

    What versions have removed that are no longer there looks like nobody's, too. So such files count as removed by the
    first one that is there.
    """
    assert limits.orphans_before_ms is not None
    at = log.begins if missing_versions(log, limits.swept) else 0
    progress.begin("listing the table", None)
    async for page in store.list(""):
        progress.advance(len(page))
        files = [
            (info.path, info.size_bytes)
            for info in page
            if info.modified_ms < limits.orphans_before_ms
            and not is_spared(info.path, limits.partition_columns, log.changes_in)
        ]
        if files:
            candidates.listed(files, at)


class _Reading:
    """Sorts what versions name into the candidates."""

    def __init__(self, log: LogToVacuum, limits: Limits, candidates: Candidates) -> None:
        self._log = log
        self._limits = limits
        self._candidates = candidates
        self._full = limits.orphans_before_ms is not None

    def take(self, page: Sequence[Named], version: int) -> None:
        """A page of what `version` names."""
        here, candidates = self._here(page), self._candidates
        after_base = version > self._log.base
        if self._log.whole:
            candidates.gone((each, version + 1) for each in here if self._may_go(each))
            return
        candidates.gone(
            (each, at)
            for each in here
            if not each.live and (at := _gone_at(each, version)) > self._limits.swept and self._may_go(each)
        )
        candidates.added(each.path for each in here if each.live and each.kind is not Kind.VECTOR)
        if after_base:
            candidates.used((each for each in here if each.kind is Kind.VECTOR), version)
        if self._full and after_base:
            candidates.named(each.path for each in here if each.live)

    def take_base(self, page: Sequence[Named]) -> None:
        """A page of what is live in the version that the others follow."""
        here = self._here(page)
        if not self._log.whole:
            self._candidates.live_in_base(here, self._log.base)
        if self._full:
            self._candidates.named(each.path for each in here)

    def _here(self, page: Sequence[Named]) -> Sequence[Named]:
        """Those that are keys below the table; the others are noted."""
        if not any(each.elsewhere for each in page):
            return page
        self._candidates.are_elsewhere(each.path for each in page if each.elsewhere)
        return [each for each in page if not each.elsewhere]

    def _may_go(self, named: Named) -> bool:
        return not is_spared(named.path, self._limits.partition_columns, self._log.changes_in)


def _gone_at(named: Named, version: int) -> int:
    """The first version that does not need it: a change file is needed by the one that made it."""
    return version + 1 if named.kind is Kind.CHANGES else version
