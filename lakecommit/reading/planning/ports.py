"""What the planner of a stream asks of others: the lease, and where figures go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from lakecommit.formats.reading import GoneFile

# Whether a reader may still read a file that a version removed. The second is None for a file of the lease's version,
# and of one that a later version added says whether its rows were new. Asked by any thread.
Wanted = Callable[[GoneFile, bool | None], bool]
Newest = Callable[[], Awaitable[int]]


class Held(Protocol):
    """A lease that is held, and renewed in the background."""

    @property
    def id(self) -> str: ...

    @property
    def told(self) -> str:
        """Which lease it is and when it was renewed last, for people. No I/O."""

    def check(self) -> None:
        """Before something is planned: it holds, and is renewed first where that is due. Raises `LeaseLost`."""

    def take(self, version: int) -> None:
        """Takes it for `version`, whether it is held already or not. Raises `LeaseLost` if it cannot hold."""

    def move_on(self, version: int) -> None:
        """From the next renewal on it keeps `version` and later ones. Returns at once."""

    def stop(self) -> None:
        """It is renewed no more. Releases nothing: a restart goes on with it."""


class Leases(Protocol):
    async def begin(self, newest: Newest, wanted: Wanted) -> tuple[Held, int]:
        """A new lease of the newest version, for somebody who has planned nothing yet, and that version. Takes a newer
        one where a vacuum was faster. Raises `LeaseLost` if that happens again and again."""

    async def go_on(self, lease: str, version: int, wanted: Wanted) -> Held:
        """The lease of a run before, for `version`. Raises `LeaseLost` if a vacuum may have deleted a file that is
        wanted."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What the source of a stream has planned and let go of, for metrics."""

    lease: str = ""
    kept_version: int = -1
    splits: int = 0
    """Of the open plan."""
    planned: int = 0
    """Splits that were handed out, of the snapshot and of later versions."""
    released: int = 0
    """Plans that were released: 0 or 1."""
    version: int = -1
