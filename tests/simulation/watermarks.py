"""How far each query has come in event time, worked out from the rows that were sealed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .names import SealRecord, owner_of_data, rows_of
from .violations import Violation

if TYPE_CHECKING:
    from .world import World


class Watermarks:
    def __init__(self, world: World) -> None:
        self._world = world
        # By query and epoch, the watermark after it; by query, the newest one in the table.
        self._after: dict[tuple[str, int], int | None] = {}
        self._in_table: dict[str, int] = {}

    def sealed(self, seal: SealRecord, delay_us: int) -> None:
        """The minimum over tasks of their newest event time, less the delay; it stays where that would be less."""
        newest: dict[int, int] = {}
        for file in seal.files:
            task = owner_of_data(file, seal.query).task
            for row in rows_of(self._world.model.body_of(file)):
                time = self._world.event_time_us(row)
                if time is not None:
                    newest[task] = max(time, newest.get(task, time))
        before = self._after.get((seal.query, seal.epoch - 1))
        own = min(newest.values()) - delay_us if newest else None
        if before is not None and own is not None and own < before:
            self._world.count("epochs behind the watermark")
        after = max((each for each in (before, own) if each is not None), default=None)
        if seal.watermark_us != after:
            raise Violation(
                f"the seal of epoch {seal.epoch} of {seal.query} has watermark {seal.watermark_us}, not {after}"
            )
        self._after[seal.query, seal.epoch] = after

    def rewound(self, marks: dict[str, int]) -> None:
        """Versions were written over: the table's watermarks are those of the marks that are left."""
        after = {query: self._after.get((query, marks.get(query, -1))) for query in self._in_table}
        self._in_table = {query: each for query, each in after.items() if each is not None}

    def committed(self, version: int, last: dict[str, int], found: dict[str, int | None] | None) -> None:
        """A version brings each query to its `last` epoch, and says `found` of their watermarks."""
        expected = {query: self._after[query, epoch] for query, epoch in last.items()}
        if (found or dict.fromkeys(last)) != expected:
            raise Violation(f"version {version} has watermarks {found}, not {expected}")
        for query, watermark_us in expected.items():
            if watermark_us is not None:
                if watermark_us < self._in_table.get(query, watermark_us):
                    raise Violation(f"version {version} takes the watermark of {query} back to {watermark_us}")
                self._in_table[query] = watermark_us
                self._world.count("watermarks in snapshots")
            elif query in self._in_table:
                raise Violation(f"version {version} takes the watermark of {query} away")
