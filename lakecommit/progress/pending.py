"""The encoded manifests of pending epochs: in memory while they are few, the rest on local disk.

How much may be in memory is one limit for all tables of a process, since they share it. What does not fit is taken from
the query that has most there, whichever table it writes to. So a table that is stuck does not push out the others.

Each query's epochs come and go in order, first in, first out. What does not fit into memory is taken from the
newest epochs, which are needed last, and written in segments (`segments`). A segment belongs to one query, so that
a query that is stuck keeps no other query's disk. An epoch is written at most once and read only when it is asked for.

Nothing here is durable, nor needs to be: the files have no name, so a killed process leaves none, and the next start
rebuilds everything from the writers' state.
"""

from __future__ import annotations

import sys
import tempfile
from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lakecommit.errors import LocalDiskFailed
from lakecommit.model import Epoch, QueryId
from lakecommit.progress.segment_files import SegmentFiles, unnamed_file
from lakecommit.progress.segments import Segment, SegmentFile, reason_of

LIMIT_BYTES = 32 * 1024 * 1024
SEGMENT_BYTES = 4 * 1024 * 1024


class PendingMemory:
    """What the pending files of all tables of a process have in memory together, which is at most `limit_bytes`.

    For one thread alone, as they are.
    """

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self._tables: list[PendingFiles] = []

    @property
    def used_bytes(self) -> int:
        return sum(table.memory_bytes for table in self._tables)

    def share_with(self, table: PendingFiles) -> None:
        """From now on what `table` holds counts, too, until it is closed."""
        self._tables.append(table)

    def part_with(self, table: PendingFiles) -> None:
        """`table` holds nothing any more."""
        self._tables = [each for each in self._tables if each is not table]

    def has_room(self, size: int) -> bool:
        return self.used_bytes + size <= self.limit_bytes

    def make_room(self, size: int) -> None:
        """Has as much written to disk as it takes. Precondition: `size` is within the limit.

        Raises `LocalDiskFailed` if disk does not take it; then everything is still there.
        """
        while not self.has_room(size):
            max(self._tables, key=lambda table: table.most_of_one_query).spill()


class PendingFiles:
    """Manifests of one table by query and epoch, in the `memory` that all tables share, or one of its own.

    A segment takes about `segment_bytes`; an epoch is never split, so one that is larger is a segment of its own.
    `local_dir` is where segments are, the system's temporary directory if None: those of a query share few files, which
    are few descriptors. `new_file` gives another empty file for each segment, which is gone when it is closed. For one
    thread alone; writing a segment takes milliseconds.
    """

    def __init__(
        self,
        *,
        memory: PendingMemory | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        local_dir: str | None = None,
        new_file: Callable[[], SegmentFile] | None = None,
    ) -> None:
        self._memory = memory or PendingMemory()
        self._memory.share_with(self)
        self._segment_bytes = segment_bytes
        self._local_dir = local_dir
        self._new_file = new_file
        self._queues: dict[QueryId, _Queue] = {}

    @property
    def memory_bytes(self) -> int:
        """What this table's manifests in memory take there."""
        return sum(queue.held_bytes for queue in self._queues.values())

    @property
    def most_of_one_query(self) -> int:
        """What the query takes in memory that has most there, in bytes."""
        return max((queue.held_bytes for queue in self._queues.values()), default=0)

    @property
    def spilled_bytes(self) -> int:
        """What the segments take on disk."""
        return sum(segment.size_bytes for queue in self._queues.values() for segment in queue.segments)

    def add(self, query: QueryId, epoch: Epoch, manifests: Sequence[bytes]) -> None:
        """Keeps the manifests of an epoch: the one after the query's newest, or any where it has none.

        Where local disk does not take what has to make room, `LocalDiskFailed` is raised, the epoch is not added and
        everything that was added before is still there.
        """
        queue = self._queues.get(query) or _Queue(epoch, epoch, self._new_file or self._shared_files().new_part)
        if epoch != queue.end:
            raise ValueError(f"epoch {epoch} of {query} does not follow epoch {queue.end - 1}, its newest one here")
        kept = tuple(manifests)
        size = _memory_of(kept)
        if size >= min(self._segment_bytes, self._memory.limit_bytes) and not self._memory.has_room(size):
            queue.keep(self._segment(queue, query, epoch, [kept]))
        else:
            self._memory.make_room(size)
            queue.hold(epoch, kept)
        queue.end = Epoch(epoch + 1)
        self._queues[query] = queue

    def manifests(self, query: QueryId, epoch: Epoch) -> tuple[bytes, ...]:
        """The manifests of an epoch that was added and not dropped, in their order; `KeyError` for any other.

        Raises `CorruptState` if they are on disk and not as they were written.
        """
        queue = self._queues.get(query)
        if queue is None or not queue.begin <= epoch < queue.end:
            raise KeyError(f"epoch {epoch} of {query} is not pending here")
        held = queue.held.get(epoch)
        return queue.segment_of(epoch).manifests(epoch) if held is None else held

    def drop(self, query: QueryId, up_to: Epoch | None = None) -> None:
        """Lets go of a query's epochs up to and including `up_to`, of all if None; those that are not here are gone."""
        queue = self._queues.get(query)
        if queue is None:
            return
        queue.drop_before(queue.end if up_to is None else Epoch(min(up_to + 1, queue.end)))
        if queue.begin == queue.end:
            del self._queues[query]

    def close(self) -> None:
        """Lets go of everything, for good."""
        for query in list(self._queues):
            self.drop(query)
        self._memory.part_with(self)

    def spill(self) -> None:
        """Moves the newest epochs in memory of the query that has most there to a segment. Precondition: one has."""
        query, queue = max(self._queues.items(), key=lambda each: each[1].held_bytes)
        first, epochs = queue.newest_held(self._segment_bytes)
        segment = self._segment(queue, query, first, epochs)
        queue.let_go_of_newest(len(epochs))
        queue.keep(segment)

    def _segment(self, queue: _Queue, query: QueryId, first: Epoch, epochs: Sequence[Sequence[bytes]]) -> Segment:
        try:
            return Segment(queue.new_file(), query, first, epochs)
        except OSError as error:
            needed = sum(len(manifest) for manifests in epochs for manifest in manifests)
            raise LocalDiskFailed(
                f"cannot keep {needed} bytes of pending epochs of query {query} in {self._where()}: {reason_of(error)}"
                "; make room there or point SPARK_LOCAL_DIRS or TMPDIR elsewhere, then start the query again; nothing "
                "is lost, it goes on with what is pending"
            ) from error

    def _shared_files(self) -> SegmentFiles:
        return SegmentFiles(lambda: unnamed_file(self._local_dir))

    def _where(self) -> str:
        try:
            return f"the local directory {self._local_dir or tempfile.gettempdir()}"
        except OSError:
            # Python looks for a directory that takes a file, and a full disk has none.
            return "any temporary directory"


@dataclass(slots=True)
class _Queue:
    """The epochs from `begin` to before `end` of a query: each is either in `held`, in memory, or in one segment."""

    begin: Epoch
    end: Epoch
    new_file: Callable[[], SegmentFile]
    held: dict[Epoch, tuple[bytes, ...]] = field(default_factory=dict)
    held_bytes: int = 0
    segments: list[Segment] = field(default_factory=list)
    """By epoch. There may be epochs in memory before, between and after them."""

    def hold(self, epoch: Epoch, manifests: tuple[bytes, ...]) -> None:
        self.held[epoch] = manifests
        self.held_bytes += _memory_of(manifests)

    def keep(self, segment: Segment) -> None:
        insort(self.segments, segment, key=_first)

    def segment_of(self, epoch: Epoch) -> Segment:
        return self.segments[bisect_right(self.segments, epoch, key=_first) - 1]

    def newest_held(self, limit_bytes: int) -> tuple[Epoch, list[tuple[bytes, ...]]]:
        """The longest run of epochs in memory that ends with the newest one there and fits, at least that one.

        Gives the run's first epoch and the manifests of each.
        """
        newest = next(reversed(self.held))
        run: list[tuple[bytes, ...]] = []
        size = 0
        for epoch, manifests in reversed(self.held.items()):
            size += _memory_of(manifests)
            if run and (epoch != newest - len(run) or size > limit_bytes):
                break
            run.append(manifests)
        run.reverse()
        return Epoch(newest - len(run) + 1), run

    def let_go_of_newest(self, count: int) -> None:
        """Takes the newest epochs out of memory."""
        for _ in range(count):
            _, manifests = self.held.popitem()
            self.held_bytes -= _memory_of(manifests)

    def drop_before(self, end: Epoch) -> None:
        for number in range(self.begin, end):
            manifests = self.held.pop(Epoch(number), None)
            if manifests is not None:
                self.held_bytes -= _memory_of(manifests)
        self.begin = max(self.begin, end)
        while self.segments and self.segments[0].last < end:
            self.segments.pop(0).close()


def _memory_of(manifests: tuple[bytes, ...]) -> int:
    return sys.getsizeof(manifests) + sum(map(sys.getsizeof, manifests))


def _first(segment: Segment) -> Epoch:
    return segment.first
