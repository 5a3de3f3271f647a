"""What a log says of a query's epochs, by its marks: the questions that whoever judges seals and manifests asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .names import SealRecord
from .violations import Violation

if TYPE_CHECKING:
    from .model import Model


class EpochsInLog:
    _model: Model
    marks: dict[str, int]
    # Whether another sink has run epochs of a query.
    mixed = False
    # Whether somebody has deleted the table, and another one has made it anew.
    is_made_anew = False

    def is_anothers(self, epoch: int) -> bool:
        """Whether another sink has run an epoch."""
        return False

    def is_open(self, query: str, epoch: int) -> bool:
        """Whether the table does not have an epoch yet."""
        return epoch > self.marks.get(query, -1)

    def leads_to_the_one_before(self, seal: SealRecord) -> bool:
        """4. dense, and 5. chained"""
        if seal.epoch == 0:
            return seal.previous is None
        before = self._model.seals.get((seal.query, seal.epoch - 1))
        if before is None:
            raise Violation(f"epoch {seal.epoch} of {seal.query} is sealed, and the one before is not")
        return seal.previous == before.digest

    def is_covered(self, query: str, epoch: int) -> bool:
        """Whether it is known that Spark's checkpoint covers an epoch: the next one has arrived."""
        return (query, epoch + 1) in self._model.seals
