"""The model's view of the past: which files each version has, and until when somebody may need them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .world import World

# Whether a reader wants a file.
Wants = Callable[[str], bool]


def everything(path: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Version:
    """`live` are its files with the rows in each; `added` and `removed` what it changed, each with `dataChange`."""

    made_ms: int
    live: Mapping[str, Sequence[int]]
    added: Mapping[str, bool]
    removed: Mapping[str, bool]
    table_id: str = ""


class VersionsModel:
    def __init__(self, world: World) -> None:
        self._world = world
        self.versions: list[Version] = []
        # By path: the newest version that has it, and the newest action that added it.
        self._last_live: dict[str, int] = {}
        self.adds: dict[str, dict[str, Any]] = {}

    @property
    def newest(self) -> int:
        return len(self.versions) - 1

    def version_made(
        self,
        live: Mapping[str, Sequence[int]],
        adds: Iterable[dict[str, Any]],
        removes: Iterable[dict[str, Any]],
        table_id: str = "",
    ) -> None:
        adds = list(adds)
        self.adds |= {action["path"]: action for action in adds}
        added = {action["path"]: action.get("dataChange", True) for action in adds}
        removed = {action["path"]: action.get("dataChange", True) for action in removes}
        self.versions.append(Version(self._world.loop.now, dict(live), added, removed, table_id))
        self._last_live |= dict.fromkeys(live, self.newest)

    def is_named(self, path: str) -> bool:
        return path in self._last_live

    def is_live(self, path: str) -> bool:
        return self._last_live.get(path) == self.newest

    def removed_in(self, path: str) -> int:
        """The first version that does not need it any more, of a file that some version has."""
        return self._last_live[path] + 1

    def needs(self, version: int, path: str) -> bool:
        """Whether `version` or a later one has the file."""
        return self._last_live.get(path, -1) >= version

    def took(self, after: int, until: int, wants: Wants) -> bool:
        """Whether versions after one and up to another have removed a file that somebody wants."""
        return any(wants(path) for each in self.versions[after + 1 : until + 1] for path in each.removed)

    def is_readable(self, version: int) -> bool:
        """Whether the log still has it."""
        return self._world.format.path(version) in self._world.objects.bodies

    def rows(self, version: int) -> list[int]:
        return sorted(row for rows in self.versions[version].live.values() for row in rows)
