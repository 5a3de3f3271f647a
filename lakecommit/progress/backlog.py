"""Whether a query still works off what its sources had when its run began. Pure values.

An offset of a source is JSON, and every number in it is a partition: `{"orders": {"3": 1200}}` of the first source says
that partition `0/orders/3` is at 1200. A partition's boundary is what its source had when the run began. While an
epoch is planned to end short of any boundary, the query is in backlog.

The backlog decides how commits are spaced and nothing else. So whatever is not known ends it: a query in doubt commits
as if there were none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Position = int | float
# For each source of a query an offset as Spark writes it, None where the source has or reports none.
Offsets = Sequence[str | None]


@dataclass(frozen=True, slots=True)
class EpochOffsets:
    """What Spark planned an epoch with.

    `fingerprint` tells one plan from another, None if it cannot be known. `planned` are the sources' end offsets and
    `latest` what the sources had when the run began, each as JSON, None if a source has or reports none; both are empty
    if they cannot be known. One epoch of a run has `latest`: it is None if it was not asked for, or is not known yet
    because the run before planned the epoch.
    """

    fingerprint: str | None = None
    planned: tuple[str | None, ...] = ()
    latest: tuple[str | None, ...] | None = None


NOT_KNOWN = EpochOffsets()


@dataclass(frozen=True, slots=True)
class Backlog:
    """The boundaries that are not reached yet, by partition; nothing, where the query is not in backlog."""

    boundaries: Mapping[str, Position] = field(default_factory=dict)

    @classmethod
    def begin(cls, latest: Offsets, planned: Offsets) -> Backlog:
        """The backlog of a run whose first epoch ends at `planned`, with sources that had `latest` by then.

        A partition that appears later has no boundary, nor has one of a source that reports no latest offset.
        """
        return cls(dict(_positions(latest))).after(planned)

    def resume(self, latest: Offsets, planned: Offsets) -> Backlog:
        """The backlog of a run that goes on where `self` was left by the run before; a new one, where it was reached.

        A boundary beyond what its source has would never be reached, so it comes down to that: a topic may have been
        created again, or a file source may read more files in an epoch than it did.
        """
        if self.reached:
            return Backlog.begin(latest, planned)
        found = dict(_positions(latest))
        told = {_source(partition) for partition in found}
        left = {
            partition: min(boundary, found.get(partition, boundary))
            for partition, boundary in self.boundaries.items()
            if partition in found or _source(partition) not in told
        }
        return Backlog(left).after(planned)

    def after(self, planned: Offsets) -> Backlog:
        """What is left once an epoch ends at `planned`. A boundary that is gone does not come back.

        A partition that `planned` does not name is gone, too: its topic was deleted, so that nobody reads up to its
        boundary any more, or its offsets cannot be known.
        """
        ends = dict(_positions(planned))
        left = {
            partition: boundary
            for partition, boundary in self.boundaries.items()
            if partition in ends and ends[partition] < boundary
        }
        return Backlog(left)

    @property
    def reached(self) -> bool:
        return not self.boundaries

    def to_json(self) -> str | None:
        """None where it is reached."""
        return None if self.reached else json.dumps(self.boundaries, sort_keys=True, separators=(",", ":"))

    @staticmethod
    def from_json(text: str | None) -> Backlog:
        """What `to_json` wrote. Anything else counts as reached: a query is not stopped for the pace of its commits."""
        boundaries = _parsed(text)
        if not isinstance(boundaries, dict) or not all(map(_is_position, boundaries.values())):
            return Backlog()
        return Backlog(boundaries)


def _positions(offsets: Offsets) -> Iterator[tuple[str, Position]]:
    """Every number in the offsets with its partition: the source's index and the path to it, as in a JSON pointer."""
    # A list and not recursion: an offset nests as deep as its source likes.
    rest: list[tuple[str, Any]] = [(str(index), _parsed(text)) for index, text in enumerate(offsets)]
    while rest:
        path, value = rest.pop()
        if isinstance(value, dict):
            rest += [(f"{path}/{key.replace('~', '~0').replace('/', '~1')}", each) for key, each in value.items()]
        elif isinstance(value, list):
            rest += [(f"{path}/{index}", each) for index, each in enumerate(value)]
        elif _is_position(value):
            yield path, value


def _source(partition: str) -> str:
    return partition.partition("/")[0]


def _parsed(text: str | None) -> Any:
    """None for what is not JSON: not every source has offsets that mean anything to others."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_position(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)
