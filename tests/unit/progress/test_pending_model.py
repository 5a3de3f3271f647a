"""Whatever is added, read and dropped, for queries of two tables, on a disk that fills up: as if in a dictionary."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lakecommit.errors import LocalDiskFailed
from lakecommit.model import Epoch, QueryId
from lakecommit.progress.pending import PendingFiles, PendingMemory
from tests.unit.progress.tools import Disk

QUERIES = st.sampled_from([QueryId(name) for name in ("a", "bb", "ccc")])
MANIFESTS = st.lists(st.binary(max_size=60), max_size=4) | st.lists(st.just(b"x" * 500), min_size=1, max_size=4)


class Pending(RuleBasedStateMachine):
    @initialize(limit=st.sampled_from([0, 1, 300, 2_000]), segment=st.sampled_from([1, 200, 700, 10_000]))
    def begin(self, limit: int, segment: int) -> None:
        self.limit = limit
        self.disk = Disk()
        self.memory = PendingMemory(limit)
        self.tables = [
            PendingFiles(memory=self.memory, segment_bytes=size, new_file=self.disk.new_file)
            for size in (segment, 2 * segment)
        ]
        self.model: dict[QueryId, dict[Epoch, tuple[bytes, ...]]] = {}

    def pending(self, query: QueryId) -> PendingFiles:
        """The table that the query writes to."""
        return self.tables[len(query) % 2]

    def epochs(self, query: QueryId) -> dict[Epoch, tuple[bytes, ...]]:
        return self.model.get(query, {})

    @rule(query=QUERIES, first=st.integers(0, 3), batch=st.lists(MANIFESTS, min_size=1, max_size=6))
    def add(self, query: QueryId, first: int, batch: list[list[bytes]]) -> None:
        for manifests in batch:
            epoch = Epoch(max(self.epochs(query), default=first - 1) + 1)
            before = self.memory.used_bytes
            try:
                self.pending(query).add(query, epoch, manifests)
            except LocalDiskFailed:
                assert self.disk.room is not None
                assert self.memory.used_bytes <= before
                break
            self.model.setdefault(query, {})[epoch] = tuple(manifests)

    @rule(query=QUERIES, offset=st.sampled_from([-1, 1, 2]))
    def add_out_of_order(self, query: QueryId, offset: int) -> None:
        if self.epochs(query):
            with pytest.raises(ValueError, match="does not follow"):
                self.pending(query).add(query, Epoch(max(self.epochs(query)) + 1 + offset), [b"never kept"])

    @rule(query=QUERIES, data=st.data())
    def commit(self, query: QueryId, data: st.DataObject) -> None:
        epochs = self.epochs(query)
        up_to = data.draw(st.integers(min(epochs, default=0) - 1, max(epochs, default=0) + 1))
        self.pending(query).drop(query, Epoch(up_to))
        for epoch in [each for each in epochs if each <= up_to]:
            with pytest.raises(KeyError):
                self.pending(query).manifests(query, epoch)
            del epochs[epoch]

    @rule(query=QUERIES)
    def forget(self, query: QueryId) -> None:
        self.pending(query).drop(query)
        self.model.pop(query, None)

    @rule(query=QUERIES)
    def read_in_order(self, query: QueryId) -> None:
        for epoch, manifests in self.epochs(query).items():
            assert self.pending(query).manifests(query, epoch) == manifests

    @rule(free=st.integers(0, 600))
    def disk_fills_up(self, free: int) -> None:
        self.disk.room = self.disk.used + free

    @precondition(lambda self: self.disk.room is not None)
    @rule()
    def disk_has_room_again(self) -> None:
        self.disk.room = None

    @invariant()
    def memory_is_bounded(self) -> None:
        assert 0 <= sum(table.memory_bytes for table in self.tables) <= self.limit

    @invariant()
    def disk_holds_the_segments_and_nothing_else(self) -> None:
        assert sum(table.spilled_bytes for table in self.tables) == self.disk.used

    @invariant()
    def nothing_is_kept_for_nobody(self) -> None:
        if not any(self.model.values()):
            assert (self.memory.used_bytes, self.disk.open) == (0, [])

    def teardown(self) -> None:
        for query, epochs in self.model.items():
            for epoch, manifests in epochs.items():
                assert self.pending(query).manifests(query, epoch) == manifests
        for table in self.tables:
            table.close()
        assert self.disk.open == []


TestPending = Pending.TestCase
