"""What the committer is told about the epochs of a run, and the backlog that follows from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lakecommit.progress.backlog import Backlog


@dataclass(frozen=True)
class Epoch:
    """An epoch with the offsets that came with it."""

    number: int
    planned: tuple[str | None, ...]
    latest: tuple[str | None, ...] = ()

    def ends(self, source: int = 0) -> Any:
        return json.loads(self.planned[source] or "null")


def backlogs(epochs: Sequence[Epoch], left: str | None = None) -> list[Backlog]:
    """The backlog after each epoch of a run that begins with what the run before left."""
    backlog, found = Backlog.from_json(left), []
    for epoch in epochs:
        step = backlog.resume(epoch.latest, epoch.planned) if epoch.latest else backlog.after(epoch.planned)
        # Through JSON, as a seal keeps it.
        backlog = Backlog.from_json(step.to_json())
        found.append(backlog)
    return found
