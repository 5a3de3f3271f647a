"""A run of a query: what it asks for, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass, field

from lakecommit.backlog import Backlog
from lakecommit.cadence import Pace
from lakecommit.drafts import TableSettings


@dataclass(slots=True)
class Run:
    """What a run of a query asks of its committer, and how it stands. `since_ms`: its last snapshot, or its beginning.

    `waiting` counts those who wait for a snapshot of it, `pressed` those who cannot go on before there is one. Until it
    has `begun`, Spark may run the newest sealed epoch again. It is `over` once the next one has begun; where it was
    stopped, its last epoch may still be under way. `unread` says that the store may hold a sealed epoch that is not
    known here: a seal went wrong, or what was pending had to be forgotten. It has `asked` once its first epoch has
    come; until then `settings` may be those of the run before.
    """

    settings: TableSettings
    since_ms: int
    pace: Pace = field(default_factory=Pace)
    backlog: Backlog | None = None
    waiting: int = 0
    pressed: int = 0
    begun: bool = False
    ended: bool = False
    over: bool = False
    unread: bool = False
    asked: bool = False

    @property
    def in_backlog(self) -> bool:
        """Whether its commits are spaced, and nobody waits for them."""
        return self.pace.backlog_interval_ms > 0 and self.backlog is not None and not self.backlog.reached
