"""What there is to tell of one query: as much as fits in memory; the rest is in the store. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from lakecommit.listening.api import CommittedSnapshot
from lakecommit.listening.places import BEFORE_ALL
from lakecommit.model import Epoch

HELD_SNAPSHOTS = 100
HELD_PARTITIONS = 10_000


@dataclass(frozen=True, slots=True)
class Untold:
    """Epochs up to `last` are in the table, and not in memory."""

    last: Epoch


class Feed:
    """The newest snapshots of a query, in order, for all of its listeners.

    `end` is the newest epoch that is known to be in the table, by lakecommit's hand, and `version` one that holds it.
    """

    def __init__(self, end: Epoch = BEFORE_ALL, version: int = -1) -> None:
        self.end = end
        self.version = version
        self.ended = False
        self._held: deque[CommittedSnapshot] = deque()
        self._partitions = 0

    def add(self, snapshot: CommittedSnapshot) -> None:
        """Beyond the bounds the oldest go: they are read from the store by whoever was not told of them."""
        self._held.append(snapshot)
        self._partitions += len(snapshot.partitions)
        self.see(Epoch(snapshot.last_epoch), snapshot.version)
        while len(self._held) > HELD_SNAPSHOTS or (self._partitions > HELD_PARTITIONS and len(self._held) > 1):
            self._let_go()

    def see(self, own: Epoch, version: int) -> None:
        """The own mark is at `own` in `version`: whoever committed up to there."""
        if own > self.end:
            self.end, self.version = own, version

    def after(self, epoch: Epoch) -> CommittedSnapshot | Untold | None:
        """What somebody who was told up to `epoch` has to be told next; None where there is nothing."""
        if epoch >= self.end:
            return None
        later = next((each for each in self._held if each.last_epoch > epoch), None)
        if later is None:
            return Untold(self.end)
        return later if later.first_epoch <= epoch + 1 else Untold(Epoch(later.first_epoch - 1))

    def told(self, epoch: Epoch) -> None:
        """Everybody was told up to `epoch`."""
        while self._held and self._held[0].last_epoch <= epoch:
            self._let_go()

    def _let_go(self) -> None:
        self._partitions -= len(self._held.popleft().partitions)
