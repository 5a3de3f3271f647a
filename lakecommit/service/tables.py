"""The tables of a process: each is there once it is asked for, and goes when nothing is left to do about it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from lakecommit.clock import Clock
from lakecommit.listening.table import Listening
from lakecommit.service.table import ServedTable
from lakecommit.storage.base import Store

# For how long nobody needs a table that goes. All that is looked after for a while after a snapshot is clean by then.
IDLE_MS = 30 * 60_000
# The same for one behind which something is left that cannot be cleaned up: its next run or `lakecommit clean` does it.
UNCLEAN_MS = 24 * 60 * 60_000

StoreOptions = tuple[tuple[str, str], ...]
_Key = tuple[str, StoreOptions]
_log = logging.getLogger("lakecommit.service")


def is_idle(unneeded_ms: int, *, clean: bool) -> bool:
    """Whether a table goes that nobody has needed for so long: whoever asks for it later has it read anew."""
    return unneeded_ms >= (IDLE_MS if clean else UNCLEAN_MS)


@dataclass(slots=True)
class _Kept:
    """`requests` are those that are under way; `needed_ms` is when it was last needed, on the boot clock."""

    table: ServedTable
    needed_ms: int
    requests: int = 0


class ServedTables:
    """One for each location and set of store options. For one event loop."""

    def __init__(
        self,
        clock: Clock,
        make: Callable[[Store, StoreOptions, str, Listening], ServedTable],
        listen: Callable[[Store], Listening],
    ) -> None:
        """`make` gives the table of a store that was opened with these options, by the name of its format, and `listen`
        those who are told of it."""
        self._clock = clock
        self._make = make
        self._listen = listen
        self._kept: dict[_Key, _Kept] = {}
        # As they were asked for: two spellings of one location are one table.
        self._spelt: dict[_Key, _Kept] = {}
        # One for each location: no listener is told twice where queries bring different store options.
        self._listening: dict[str, Listening] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[ServedTable]:
        return iter([kept.table for kept in self._kept.values()])

    def by_location(self) -> list[tuple[str, ServedTable]]:
        return [(location, kept.table) for (location, _), kept in self._kept.items()]

    @property
    def listening(self) -> Mapping[str, Listening]:
        """By location."""
        return self._listening

    @contextmanager
    def using(
        self, path: str, store_options: StoreOptions, table_format: str, open_at: Callable[[], Store]
    ) -> Iterator[ServedTable]:
        """The table that is asked for, which does not go meanwhile."""
        asked = (path, store_options)
        if asked not in self._spelt:
            self._spelt[asked] = self._keep(open_at(), store_options, table_format)
        kept = self._spelt[asked]
        kept.requests += 1
        try:
            yield kept.table
        finally:
            kept.requests -= 1
            kept.needed_ms = self._clock.boot_ms()

    def _keep(self, store: Store, store_options: StoreOptions, table_format: str) -> _Kept:
        key = (store.location, store_options)
        if key not in self._kept:
            if store.location not in self._listening:
                self._listening[store.location] = self._listen(store)
            listening = self._listening[store.location]
            listening.use(store)
            made = self._make(store, store_options, table_format, listening)
            self._kept[key] = _Kept(made, self._clock.boot_ms())
        return self._kept[key]

    def let_go(self) -> None:
        """Forgets the tables that are idle, and what listeners were told of queries that nobody cleans up behind.

        Never waits, so that nobody can ask for a table in between.
        """
        now_ms = self._clock.boot_ms()
        for key, kept in list(self._kept.items()):
            if kept.requests or kept.table.is_needed:
                kept.needed_ms = now_ms
            elif is_idle(now_ms - kept.needed_ms, clean=kept.table.is_clean):
                _log.debug("nobody needs %s any more: it is read anew when it is asked for", key[0])
                kept.table.close()
                del self._kept[key]
                self._spelt = {asked: each for asked, each in self._spelt.items() if each is not kept}
        looked_after: dict[str, set[str]] = {}
        for location, table in self.by_location():
            looked_after.setdefault(location, set()).update(table.looked_after)
        self._listening = {place: each for place, each in self._listening.items() if place in looked_after}
        for location, listening in self._listening.items():
            listening.keep_ended(looked_after[location])
