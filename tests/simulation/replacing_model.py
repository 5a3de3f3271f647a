"""What the model knows of writes that replace the table: batch writes, and streams whose every epoch does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .violations import Violation

if TYPE_CHECKING:
    from .model import Model
    from .world import World


class ReplacingModel:
    def __init__(self, model: Model, world: World) -> None:
        self._model = model
        self._world = world
        # The version that a batch write rests on which replaces the table, and the newest that changed files.
        self.rests_on: dict[str, int] = {}
        self._changed = -1
        # The rows that such writes, and such epochs, have replaced.
        self.rows: set[int] = set()
        # Those whose every epoch replaces the table.
        self.queries: set[str] = set()

    def is_due(self, query: str) -> bool:
        return query in self.queries

    def version_created(
        self, number: int, info: dict[str, Any], gone: set[int], left: int, *, changed: bool, given_up: bool
    ) -> None:
        """`gone` are the rows that the version has removed, and `left` is how many files it has left, before its own.

        `given_up` says that the epochs in it are left out.
        """
        rests_on = self.rests_on.get(info.get("txnId", ""))
        epochs = self._replacing(info)
        if epochs and not given_up:
            self._check_epoch(number, info, epochs, left)
        if rests_on is not None:
            self._check_batch(number, rests_on, left)
        if epochs or rests_on is not None:
            self.rows |= gone
        if changed:
            self._changed = number

    def _replacing(self, info: dict[str, Any]) -> list[tuple[str, int]]:
        """The epochs of a version whose seals say that they replace the table."""
        runs = info.get("lakecommit", {}).get("epochs", {})
        epochs = [(query, epoch) for query, (first, last) in runs.items() for epoch in range(first, last + 1)]
        return [key for key in epochs if key in self._model.seals and self._model.seals[key].replaces]

    def _check_epoch(self, number: int, info: dict[str, Any], epochs: list[tuple[str, int]], left: int) -> None:
        self._world.count("epochs that replace the table")
        query, epoch = epochs[0]
        if not self._model.seals[query, epoch].files:
            self._world.count("epochs that empty the table")
        others = [each for each in info["lakecommit"]["epochs"] if each != query]
        if others or len(epochs) > 1:
            raise Violation(f"version {number} replaces the table with epochs {epochs}, and has some of {others}")
        if left:
            raise Violation(f"version {number} replaces the table with {epochs} and leaves {left} files")

    def _check_batch(self, number: int, rests_on: int, left: int) -> None:
        """It removes all that is there, and nobody has changed that since it read it."""
        self._world.count("versions that replace the table")
        if left:
            raise Violation(f"version {number} replaces the table and leaves {left} files")
        if self._changed > rests_on:
            raise Violation(f"version {number} rests on version {rests_on} and drops what version {self._changed} did")
