"""What a directory's log can testify: which data files it names.

Nothing is ever taken out of the log of a stream, so that the newest compact and the entries after it name all that was
ever committed. A version of batch writes may name less than the one before. A compact may be large: it is read piece by
piece.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection

from lakecommit.concurrency.parallel import in_parallel
from lakecommit.errors import CorruptState, StoreError
from lakecommit.formats.evidence import Holding, LogAttempts, VersionTag
from lakecommit.formats.parquet.lines import is_own, own_names
from lakecommit.formats.parquet.log import LogStore, list_log
from lakecommit.formats.parquet.names import LogListing
from lakecommit.formats.pieces import whole_lines
from lakecommit.model import AttemptId, Epoch
from lakecommit.storage.base import Found

# As much of the end of a compact as its last epoch surely begins in, or else nothing is concluded.
TAIL_BYTES = 64 * 1024
PARALLEL = 8


async def pieces(store: LogStore) -> AsyncIterator[bytes]:
    """All that the log says of committed files, in whole lines. Raises `CorruptState` if it cannot be read whole:
    what is not known is never taken for absent."""
    for again in (False, True):
        # A compact may have come, and what it replaces gone, between the listing and the reads; what is wrong twice is
        # wrong. What was said before is said again. A piece of an object that is gone fails as a store does.
        try:
            async for piece in pieces_of(store, await list_log(store)):
                yield piece
            return
        except (CorruptState, StoreError):
            if again:
                raise


async def pieces_of(store: LogStore, listing: LogListing) -> AsyncIterator[bytes]:
    """The same of the log as a listing has shown it; of batch writes, whose log has nothing but compacts, all that are
    left, from the newest on."""
    last = {listing.last_compact} if listing.entries else listing.compacts.keys()
    for number in sorted(last & listing.compacts.keys(), reverse=True):
        compact = listing.compacts[number]
        async for piece in whole_lines(store, compact.path, compact.size_bytes):
            yield piece
    entries = [info.path for number, info in sorted(listing.entries.items()) if number > listing.last_compact]
    for at in range(0, len(entries), PARALLEL):
        for path, found in zip(
            entries[at : at + PARALLEL], await in_parallel(store.get, entries[at : at + PARALLEL]), strict=True
        ):
            if not isinstance(found, Found):
                raise _unreadable(store, path)
            yield found.body


async def named(store: LogStore, paths: Collection[str]) -> frozenset[str]:
    """Which of `paths`, data files of lakecommit, the log names."""
    wanted = {path.rpartition("/")[2]: path for path in paths}
    found: set[str] = set()
    async for piece in pieces(store):
        if len(found) == len(wanted):
            break
        found |= {wanted[name] for _, _, name in own_names(piece) if name in wanted}
    return frozenset(found)


async def attempts(store: LogStore, wanted: Collection[AttemptId]) -> LogAttempts:
    """Of which attempts the log names any file."""
    looked_for, found = frozenset(map(str, wanted)), set()
    async for piece in pieces(store):
        found |= {attempt for _, attempt, _ in own_names(piece) if attempt in looked_for}
    return LogAttempts(frozenset(map(AttemptId, found)), whole=True)


async def tags(store: LogStore, first: int) -> list[VersionTag]:
    listing = await list_log(store)
    infos = [(number, listing.info(number)) for number in sorted(listing.numbers) if number >= first]
    return [VersionTag(number, info.etag, info.modified_ms) for number, info in infos if info is not None]


async def holding(store: LogStore, number: int) -> Holding | None:
    """What the entry of a number holds: its epoch, and of a compact all epochs whose entries are cleaned up, too. None
    where it is gone, and nothing where it was cleaned up.

    Where rows of another sink may be in an epoch's place, it is `foreign`: then the log has to be asked by name. Of
    those whose entries are gone nobody knows without that.
    """
    listing = await list_log(store)
    info = listing.info(number)
    if info is None:
        return Holding(None) if number < listing.last_compact else None
    compact = number in listing.compacts
    start = max(0, info.size_bytes - TAIL_BYTES) if compact else 0
    tail = await store.get_range(info.path, start, info.size_bytes - start) if info.size_bytes else b""
    lines = [line for line in tail.split(b"\n")[1:] if line]
    own = (Epoch(number), Epoch(number))
    # Of a compact the last line tells: those of its own epoch stand at its end.
    judged = lines[-1:] if compact else lines
    foreign = [own] if any(not is_own(line, number, exactly=not compact) for line in judged) else []
    lowest = min(listing.numbers)
    gone = [(Epoch(0), Epoch(lowest - 1))] if compact and lowest > 0 else []
    return Holding(info.etag, (*gone, own), own=number, foreign=(*gone, *foreign))


def _unreadable(store: LogStore, path: str) -> CorruptState:
    return CorruptState(
        f"cannot tell which files the log of {store.location} names: {path} was listed and is missing; nothing was "
        "deleted; restore the log, or try again if somebody was cleaning it up just now"
    )
