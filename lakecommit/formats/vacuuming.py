"""What a vacuum asks of a format: which versions there are, and which objects each of them names.

A vacuum takes the names page by page, so that no format has to hold those of a large version at once. What goes and
what stays is for `vacuuming` to decide; a format only says what its log says.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from lakecommit.formats.base import Located, TableState
from lakecommit.storage.base import ObjectInfo


class Kind(Enum):
    """What an object is for. The values are what people read."""

    DATA = "data file"
    VECTOR = "deletion vectors"
    CHANGES = "change file"


@dataclass(frozen=True, slots=True)
class Named:
    """What a version says of one object: that it is live from there on, or no longer; a change file is live in its own
    version alone.

    `path` is a key below the table's location. Where it is `elsewhere`, that is what the log says in whole: an object
    that may be anywhere, in the table too, under another spelling. `user` tells which logical file an object serves of
    those that one may serve.
    """

    path: str
    live: bool
    kind: Kind = Kind.DATA
    size_bytes: int | None = None
    user: str = ""
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class LoggedVersion:
    """A version, and the object of the log that holds it as a listing shows it."""

    version: int
    info: ObjectInfo


@dataclass(frozen=True, slots=True)
class LogToVacuum:
    """A log as a listing shows it. `versions` are in order and without a hole, up to the `newest`, -1 where there is
    none yet; there are none where a format's versions never let go of anything. `last` is the newest one.

    What was removed by versions before `begins` is not known in whole: they are no longer there. All that is live in
    the version `base` is written down somewhere else in the log; it is -1 where that is nothing. `whole` says that each
    version names all that is live in it; then a later one that does not has removed it. `changes_in` is the hidden
    directory of change files, empty where a format has none.
    """

    versions: tuple[LoggedVersion, ...]
    newest: int
    last: LoggedVersion | None = None
    begins: int = 0
    base: int = -1
    whole: bool = False
    changes_in: str = ""


class Vacuum(Located, Protocol):
    def check_vacuum(self, state: TableState) -> None:
        """Raises `UnsupportedTable`, naming the feature, if files might be deleted that somebody needs. No I/O."""

    def kept_ms(self, state: TableState) -> int | None:
        """For how long the table itself keeps what it has removed; None for ever. No I/O."""

    def removes_files(self, state: TableState) -> bool:
        """Whether its versions ever do. Where they do not, only what none of them names can go. No I/O."""

    async def log_to_vacuum(self, state: TableState, swept: int) -> LogToVacuum:
        """The log up to its newest version, with all that was removed after the version `swept`, -1 for all.

        A listing of the log or two, and nothing that grows with the table. Raises `CorruptState` if versions are
        missing that it takes to know what is live.
        """

    def names(self, versions: Sequence[LoggedVersion]) -> AsyncIterator[tuple[int, Sequence[Named]]]:
        """All that each of `versions` names, page by page, in the order of the versions. Not all have a page.

        Raises `CorruptState` if one is gone or damaged.
        """

    def live_names(self, log: LogToVacuum) -> AsyncIterator[Sequence[Named]]:
        """All that is live in `log.base`."""

    def forgotten_names(self, log: LogToVacuum) -> AsyncIterator[Sequence[Named]]:
        """What versions before `log.begins` have removed, as far as the log still says so."""

    async def versions_after(self, version: LoggedVersion) -> Sequence[LoggedVersion]:
        """Those that are there now, in order; two requests where there are none.

        Raises `ContradictoryState` if `version` is not what it was: then nobody can tell what came after it.
        """
