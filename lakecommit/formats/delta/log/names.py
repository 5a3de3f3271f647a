"""The names of the objects in a Delta log, and which of them make up a checkpoint."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from lakecommit.storage.base import ObjectInfo

LOG = "_delta_log"
# Base names of data files that lakecommit writes. They need no escaping, and each is used once, so that a file is known
# by it however the log spells the path.
OWN_NAME = re.compile(rb'(\d{20}-\d+-[0-9a-f]{32}-\d+\.parquet)"')
LAST_CHECKPOINT = f"{LOG}/_last_checkpoint"
SIDECARS = f"{LOG}/_sidecars"

_COMMIT = re.compile(r"(\d{20})\.json")
_CLASSIC = re.compile(r"(\d{20})\.checkpoint\.parquet")
_PART = re.compile(r"(\d{20})\.checkpoint\.(\d{10})\.(\d{10})\.parquet")
_V2 = re.compile(r"(\d{20})\.checkpoint\.[0-9A-Za-z-]+\.(?:json|parquet)")


@dataclass(frozen=True, slots=True)
class CheckpointFiles:
    """A complete checkpoint: every file that holds actions other than those of data files."""

    version: int
    files: tuple[ObjectInfo, ...]


@dataclass(frozen=True, slots=True)
class LogListing:
    """`commits` are versions in order, `commit_files` their objects; `checkpoints` are complete ones, newest first."""

    commits: tuple[int, ...]
    checkpoints: tuple[CheckpointFiles, ...]
    commit_files: tuple[ObjectInfo, ...]

    def up_to(self, version: int) -> LogListing:
        """The same without what is later."""
        count = bisect_right(self.commits, version)
        checkpoints = tuple(each for each in self.checkpoints if each.version <= version)
        return LogListing(self.commits[:count], checkpoints, self.commit_files[:count])

    def begins(self) -> int:
        """The first version from which on none is missing. Precondition: there are commits."""
        begins = self.commits[-1]
        for version in reversed(self.commits[:-1]):
            if version != begins - 1:
                break
            begins = version
        return begins

    def readable_versions(self) -> tuple[int | None, int]:
        """The first and the last version that the log leads to: the first is 0, or that of a checkpoint from which on
        no version is missing; None where there is no such checkpoint."""
        if not self.commits:
            newest = self.checkpoints[0].version if self.checkpoints else -1
            return (newest, newest) if self.checkpoints else (None, newest)
        last, begins = self.commits[-1], self.begins()
        checkpoints = [each.version for each in self.checkpoints if begins - 1 <= each.version <= last]
        return (0 if begins == 0 else min(checkpoints, default=None)), last


def commit_path(version: int) -> str:
    return f"{LOG}/{version:020d}.json"


def checkpoint_path(version: int) -> str:
    """Where the classic checkpoint of `version` is, which is one file."""
    return f"{LOG}/{version:020d}.checkpoint.parquet"


def sidecar_path(named: str) -> str:
    """The object that a checkpoint's `sidecar` action names, by its bare name or by more."""
    return f"{SIDECARS}/{named.rpartition('/')[2]}"


def commit_version(path: str) -> int | None:
    """The version whose commit is at `path`; None where it is something else."""
    match = _COMMIT.fullmatch(path[len(LOG) + 1 :])
    return None if match is None else int(match[1])


def before_version(version: int) -> str:
    """A path that sorts after everything of `version - 1` and before everything of `version`."""
    return f"{LOG}/{version:020d}"


def is_versioned(path: str) -> bool:
    """Whether the object's name begins with a version. All such names sort before the other names in the log."""
    return path[len(LOG) + 1 :][:1].isdigit()


def arrange(objects: Iterable[ObjectInfo]) -> LogListing:
    """Sorts out a listing. Checksums, compacted logs, incomplete multi-part checkpoints and unknown names are left."""
    commits: dict[int, ObjectInfo] = {}
    complete: list[CheckpointFiles] = []
    parts: dict[tuple[int, int], dict[int, ObjectInfo]] = {}
    for info in objects:
        name = info.path[len(LOG) + 1 :]
        if match := _COMMIT.fullmatch(name):
            commits[int(match[1])] = info
        elif match := _CLASSIC.fullmatch(name):
            complete.append(CheckpointFiles(int(match[1]), (info,)))
        elif match := _PART.fullmatch(name):
            parts.setdefault((int(match[1]), int(match[3])), {})[int(match[2])] = info
        elif match := _V2.fullmatch(name):
            complete.append(CheckpointFiles(int(match[1]), (info,)))
    for (version, total), found in parts.items():
        if sorted(found) == list(range(1, total + 1)):
            complete.append(CheckpointFiles(version, tuple(found[number] for number in sorted(found))))
    complete.sort(key=lambda checkpoint: checkpoint.version, reverse=True)
    versions = tuple(sorted(commits))
    return LogListing(versions, tuple(complete), tuple(commits[version] for version in versions))
