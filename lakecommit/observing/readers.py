"""What streams that read tables have planned and let go of, as their planners tell the driver: figures, and a line of
the log when a plan is made and when it is released.

A planner is a process of its own, whose log nobody sees.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping

# Nobody tells that a planner has ended: of so many that told something last, the figures are kept.
KEPT = 100
_log = logging.getLogger("lakecommit.observing")


class Readers:
    """For all tables of a process, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Who told something last comes last.
        self._known: dict[tuple[str, str], Mapping[str, int]] = {}

    def told(self, table: str, lease: str, figures: Mapping[str, int]) -> None:
        """`figures` are those of `lakecommit.reading.planning.ports.Figures`, which is the planner's to count."""
        with self._lock:
            before = self._known.pop((table, lease), {})
            self._known[table, lease] = dict(figures)
            for key in list(self._known)[:-KEPT]:
                del self._known[key]
        for event in _events(before, figures):
            shown = " ".join(f"{key}={value}" for key, value in figures.items())
            _log.info("%s table=%s lease=%s %s", event, table, lease, shown)

    def read(self) -> dict[str, dict[str, dict[str, object]]]:
        """By table, and by a name that has the lease."""
        with self._lock:
            known = dict(self._known)
        found: dict[str, dict[str, dict[str, object]]] = {}
        for (table, lease), figures in sorted(known.items()):
            found.setdefault(table, {})[f"reader-{lease}"] = dict(figures)
        return found


def _events(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    events = []
    if after.get("splits", 0) and not before.get("splits", 0):
        events.append("snapshot-planned")
    if after.get("released", 0) > before.get("released", 0):
        events.append("snapshot-released")
    return events
