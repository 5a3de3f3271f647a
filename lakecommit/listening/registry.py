"""The listeners that a process has, for all of its tables."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence

from lakecommit.listening.api import CommitListener, check_listeners


class Listeners:
    """The listeners of a process, by name. May be added to from any thread."""

    def __init__(self, listeners: Sequence[CommitListener] = ()) -> None:
        self._by_name: dict[str, CommitListener] = {}
        self._lock = threading.Lock()
        self._turns: dict[str, tuple[CommitListener, asyncio.Lock]] = {}
        self.add(listeners)

    def add(self, listeners: Sequence[CommitListener]) -> None:
        """Adds all of them, or raises `InvalidInput` and adds none. One whose name is taken replaces the other."""
        added = check_listeners(listeners)
        with self._lock:
            self._by_name = {**self._by_name, **added}

    def __getitem__(self, name: str) -> CommitListener:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def turn(self, name: str, listener: CommitListener) -> asyncio.Lock:
        """Who calls a listener holds this, so that no listener need care for threads. Another object has another."""
        known = self._turns.get(name)
        if known is None or known[0] is not listener:
            known = self._turns[name] = listener, asyncio.Lock()
        return known[1]
