"""Which versions of the table hold a query's epochs, asked afresh: the marks alone cannot tell.

A writer whose PUT carries no condition can write over any version of ours, also one that others have followed: then the
marks of a later version say that an epoch is done whose files the log does not name any more. So before its state goes,
and while it waits for that, each epoch is looked for in the log. What is remembered of a version counts for as long as
a listing shows it with the same ETag; so that a look at all of them is one request, however many they are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from lakecommit.concurrency.parallel import in_parallel
from lakecommit.formats.base import Testify
from lakecommit.formats.change import EpochRun
from lakecommit.formats.evidence import Holding, VersionTag
from lakecommit.model import Epoch, QueryId
from lakecommit.storage.base import same_etag

# How many versions are read at a time where it is not known which one holds an epoch, and in one look altogether.
WINDOW = 8
MAX_READ = 1000
# How many versions of ours are remembered. What is forgotten is read again.
MAX_NOTED = 10_000
_NOTHING = Holding(None)
_log = logging.getLogger("lakecommit.releasing")


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """`since_ms` says, by the store's clock, when the version was written that holds an epoch. `missing` are those
    that no version holds; `decided`, that every version was asked that could. `own` is the newest own mark in them."""

    since_ms: Mapping[Epoch, int]
    missing: frozenset[Epoch] = frozenset()
    decided: bool = True
    own: int = -1


class OwnVersions:
    """What is known of the versions of one table, of what they hold of one query."""

    def __init__(self, table_format: Testify, query: QueryId) -> None:
        self._format = table_format
        self._query = query
        self._known: dict[int, Holding] = {}
        self._turn = asyncio.Lock()
        self._seen_ms: dict[Epoch, int] = {}

    def note(self, version: int, holding: Holding) -> None:
        """A version that was just committed."""
        self._known[version] = holding
        while len(self._known) > MAX_NOTED:
            del self._known[min(self._known)]

    def first_seen(self, epoch: Epoch, at_ms: int) -> int:
        """Since when an epoch is known to be in the log, which no version of ours says: at first, since `at_ms`."""
        return self._seen_ms.setdefault(epoch, at_ms)

    def forget(self, epochs: Collection[Epoch]) -> None:
        """Nobody asks for these any more: their state is released."""
        for epoch in epochs:
            self._seen_ms.pop(epoch, None)

    def take_for_held(self, epochs: Collection[Epoch]) -> Mapping[Epoch, int]:
        """Epochs that were done before the log begins, as far as it can tell; it is said once."""
        if new := sorted(epoch for epoch in epochs if epoch not in self._seen_ms):
            _log.warning(
                "epochs %s of query %s were done before the log of %s begins, and the log has no trace of their files: "
                "they are taken for compacted by others, and their state is released",
                *(new[:20], self._query, self._format.location),
            )
        return {epoch: self.first_seen(epoch, 0) for epoch in epochs}

    def known(self, epochs: Collection[Epoch]) -> frozenset[Epoch]:
        """Those of `epochs` whose version is remembered."""
        return held_by(self._known.values(), frozenset(epochs))

    def foreign(self, epochs: Collection[Epoch]) -> frozenset[Epoch]:
        """Those of `epochs` in whose place another sink may have put rows of its own, and no version shows that it has
        not."""
        wanted, known = frozenset(epochs), self._known.values()
        doubted = _within((run for each in known for run in each.foreign), wanted)
        for each in known:
            doubted -= held_by([each], doubted) - _within(each.foreign, doubted)
        return doubted

    def gave_up(self, epoch: Epoch) -> bool:
        """Whether an epoch was given up, as far as it is known."""
        wanted = frozenset((epoch,))
        holdings = [each for each in self._known.values() if held_by([each], wanted)]
        return bool(holdings) and all(epoch in _within(each.given_up, wanted) for each in holdings)

    async def find(self, wanted: Collection[Epoch], head: int) -> Whereabouts:
        """Where the epochs in `wanted` are, in a table whose newest version is `head`.

        Precondition: all of them are at or before the own mark. After: whatever is in `since_ms` was in the log when
        this was asked.
        """
        epochs = frozenset(wanted)
        if not epochs:
            return Whereabouts({})
        async with self._turn:
            return await self._find(epochs, head)

    async def _find(self, epochs: frozenset[Epoch], head: int) -> Whereabouts:
        decided = await self._search(epochs - held_by(self._known.values(), epochs), head)
        tags, replaced = await self._check(epochs, head)
        if replaced:
            # Whoever noticed it before may have committed them again.
            _log.warning(
                "versions %s of %s were written over by another writer, which does not use conditional writes",
                *(replaced[:20], self._format.location),
            )
            decided = await self._search(epochs - held_by(self._known.values(), epochs), head)
            tags, replaced = await self._check(epochs, head)
            decided = decided and not replaced
        since_ms: dict[Epoch, int] = {}
        own = -1
        for version, tag in tags.items():
            if version in self._known:
                own = max(own, *(each for each in [self._known[version].own, -1] if each is not None))
                for epoch in held_by([self._known[version]], epochs):
                    since_ms[epoch] = min(tag.modified_ms, since_ms.get(epoch, tag.modified_ms))
        return Whereabouts(since_ms, epochs - since_ms.keys(), decided, own)

    async def _search(self, missing: frozenset[Epoch], head: int) -> bool:
        """Reads back from `head` until all epochs are found that no known version holds; whether no older version can
        hold those that were not.

        Whatever version holds an epoch sets the own mark to it, or beyond: so one with an earlier mark ends the search.
        """
        version, read = head, 0
        while missing and version >= 0:
            if read >= MAX_READ:
                return False
            window = [each for each in range(version, max(-1, version - WINDOW), -1) if each not in self._known]
            for number, found in zip(window, await in_parallel(self._read, window), strict=True):
                if found is None:
                    return False
                self.note(number, found)
            read += len(window)
            for number in range(version, max(-1, version - WINDOW), -1):
                holding = self._known.get(number, _NOTHING)
                missing -= held_by([holding], missing)
                if missing and holding.own is not None and holding.own < min(missing):
                    return True
            version -= WINDOW
        return True

    async def _check(self, epochs: frozenset[Epoch], head: int) -> tuple[Mapping[int, VersionTag], list[int]]:
        """Lists the versions that hold something, and reads those again that are not what is remembered of them.

        Returns the listing, and the versions that do not hold any more what they held.
        """
        first = min((number for number, holding in self._known.items() if held_by([holding], epochs)), default=head)
        tags = {tag.version: tag for tag in await self._format.tags(first)}
        # What is newer than the listing was committed since. What comes before it holds none of `epochs`, which cannot
        # change: an epoch is only ever committed in a version that was not there. So it is not read again while some of
        # them are still looked for.
        newest = max(tags, default=head)
        searching = held_by(self._known.values(), epochs) != epochs
        kept = [number for number in self._known if number in tags or number > newest or (searching and number < first)]
        self._known = {number: self._known[number] for number in kept}
        listed = [(number, each) for number, each in self._known.items() if number in tags]
        other = [number for number, each in listed if not same_etag(each.etag, tags[number].etag)]
        replaced: list[int] = []
        for number, found in zip(other, await in_parallel(self._read, other), strict=True):
            before = self._known.pop(number)
            if found is not None:
                self._known[number] = found
            if found is None or found.runs != before.runs:
                replaced.append(number)
        return tags, replaced

    async def _read(self, version: int) -> Holding | None:
        return await self._format.holding(version, self._query)


def held_by(holdings: Iterable[Holding], epochs: frozenset[Epoch]) -> frozenset[Epoch]:
    """Those of `epochs` that one of `holdings` has."""
    return _within((run for holding in holdings for run in holding.runs), epochs)


def _within(runs: Iterable[EpochRun], epochs: frozenset[Epoch]) -> frozenset[Epoch]:
    if not epochs:
        return epochs
    low, high = min(epochs), max(epochs)
    return epochs.intersection(
        each for first, last in runs for each in map(Epoch, range(max(first, low), min(last, high) + 1))
    )
