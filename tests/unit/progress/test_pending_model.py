"""Whatever is added, read and dropped, for users of two tables, on a disk that fills up: as if it were a dictionary."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lakecommit.errors import LocalDiskFailed
from lakecommit.model import CommitUser, Epoch
from lakecommit.progress.pending import PendingFiles, PendingMemory
from tests.unit.progress.tools import Disk

USERS = st.sampled_from([CommitUser(name) for name in ("a", "bb", "ccc")])
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
        self.model: dict[CommitUser, dict[Epoch, tuple[bytes, ...]]] = {}

    def pending(self, user: CommitUser) -> PendingFiles:
        """The table that the user writes to."""
        return self.tables[len(user) % 2]

    def epochs(self, user: CommitUser) -> dict[Epoch, tuple[bytes, ...]]:
        return self.model.get(user, {})

    @rule(user=USERS, first=st.integers(0, 3), batch=st.lists(MANIFESTS, min_size=1, max_size=6))
    def add(self, user: CommitUser, first: int, batch: list[list[bytes]]) -> None:
        for manifests in batch:
            epoch = Epoch(max(self.epochs(user), default=first - 1) + 1)
            before = self.memory.used_bytes
            try:
                self.pending(user).add(user, epoch, manifests)
            except LocalDiskFailed:
                assert self.disk.room is not None
                assert self.memory.used_bytes <= before
                break
            self.model.setdefault(user, {})[epoch] = tuple(manifests)

    @rule(user=USERS, offset=st.sampled_from([-1, 1, 2]))
    def add_out_of_order(self, user: CommitUser, offset: int) -> None:
        if self.epochs(user):
            with pytest.raises(ValueError, match="does not follow"):
                self.pending(user).add(user, Epoch(max(self.epochs(user)) + 1 + offset), [b"never kept"])

    @rule(user=USERS, data=st.data())
    def commit(self, user: CommitUser, data: st.DataObject) -> None:
        epochs = self.epochs(user)
        up_to = data.draw(st.integers(min(epochs, default=0) - 1, max(epochs, default=0) + 1))
        self.pending(user).drop(user, Epoch(up_to))
        for epoch in [each for each in epochs if each <= up_to]:
            with pytest.raises(KeyError):
                self.pending(user).manifests(user, epoch)
            del epochs[epoch]

    @rule(user=USERS)
    def forget(self, user: CommitUser) -> None:
        self.pending(user).drop(user)
        self.model.pop(user, None)

    @rule(user=USERS)
    def read_in_order(self, user: CommitUser) -> None:
        for epoch, manifests in self.epochs(user).items():
            assert self.pending(user).manifests(user, epoch) == manifests

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
        for user, epochs in self.model.items():
            for epoch, manifests in epochs.items():
                assert self.pending(user).manifests(user, epoch) == manifests
        for table in self.tables:
            table.close()
        assert self.disk.open == []


TestPending = Pending.TestCase
