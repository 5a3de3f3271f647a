"""Turns of readers and vacuums: a request about leases waits now and then until the other side has done something.

What the two agree on is a matter of some requests, which rarely meet by chance. Held back so, they meet in every order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from .lease_model import LEASES, VACUUM
from .process import Process

if TYPE_CHECKING:
    from .world import World

_HELD_BACK = 0.35
_MOST_TURNS = 3
# How many times the usual latency it waits at most.
_LONGEST = 60


@dataclass(slots=True, eq=False)
class _Waiting:
    """`turns` of the other side are left."""

    vacuums: bool
    turns: int
    act: Callable[..., None]
    args: tuple[Any, ...]


class Turns:
    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = Random(f"turns {world.seed}")
        self._waiting: list[_Waiting] = []

    def holds_back(self, process: Process, path: str, act: Callable[..., None], *args: Any) -> bool:
        """Whether the request waits for the other side; it takes effect all the same after a while."""
        if not (path.startswith((LEASES[:-1], VACUUM[:-1])) and self._has_another_side(process)):
            return False
        if self._rng.random() >= _HELD_BACK * self._world.chaos:
            return False
        turns = 1 + int(self._rng.random() * _MOST_TURNS)
        waiting = _Waiting(process.vacuum is not None, turns, act, args)
        self._waiting.append(waiting)
        loop = self._world.loop
        loop.at(loop.now + _LONGEST * self._world.profile.latency_ms, self._goes_on, waiting)
        return True

    def happened(self, process: Process, path: str) -> None:
        """A request of one side has taken effect."""
        if not self._waiting or not path.startswith((LEASES[:-1], VACUUM[:-1])):
            return
        for each in list(self._waiting):
            if each.vacuums != (process.vacuum is not None):
                each.turns -= 1
                if not each.turns:
                    self._world.loop.at(self._world.loop.now, self._goes_on, each)

    def _goes_on(self, waiting: _Waiting) -> None:
        if waiting in self._waiting:
            self._waiting.remove(waiting)
            waiting.act(*waiting.args)

    def _has_another_side(self, process: Process) -> bool:
        if process.vacuum is not None:
            return any(each.reads_table and not each.frozen for each in self._world.processes.values())
        return process.reads_table and any(
            each.vacuum is not None and not each.frozen for each in self._world.processes.values()
        )
