"""Which objects of a Delta log have expired. Pure.

A log is cut off at a checkpoint, never between two: the boundary B is the newest checkpoint that is not after the last
commit older than the table retains. What is before B goes, and B with its commit and all after it stay, so that every
version that is retained still reads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lakecommit.formats.delta.log.names import LOG, arrange
from lakecommit.formats.delta.schema.protocol import features_of, unknown_to_us
from lakecommit.formats.delta.state import DeltaProtocol, Metadata
from lakecommit.formats.delta.upkeep.retention import DAY_MS, retention_of
from lakecommit.storage.base import ObjectInfo

_COMMIT_OR_CHECKSUM = re.compile(r"(\d{20})\.(?:json|crc)")
_COMPACTED = re.compile(r"(\d{20})\.\d{20}\.compacted\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.(?:[^.]+\.){0,2}(?:json|parquet)")
_PROTECTED = "delta.requireCheckpointProtectionBeforeVersion"


@dataclass(frozen=True, slots=True)
class Expired:
    """`versions` go first, from the oldest on, then `checkpoints`. `kept` says why nothing goes, if that has a reason
    other than age."""

    boundary: int | None = None
    versions: tuple[str, ...] = ()
    checkpoints: tuple[str, ...] = ()
    kept: str | None = None

    def __len__(self) -> int:
        return len(self.versions) + len(self.checkpoints)


def expired(
    objects: Sequence[ObjectInfo], protocol: DeltaProtocol, metadata: Metadata, now_ms: int, oldest_read: int | None
) -> Expired:
    """`objects` are all of the log whose names begin with a version. `oldest_read` is a version that is still read."""
    if metadata.configuration.get("delta.enableExpiredLogCleanup", "true").strip().lower() == "false":
        return Expired(kept="the table keeps its log (delta.enableExpiredLogCleanup=false)")
    if unknown := unknown_to_us(protocol):
        return Expired(kept=f"the table has features that lakecommit does not support: {unknown}")
    before_ms = retention_of(metadata).log_before_ms(now_ms)
    if before_ms is None:
        return Expired(kept="delta.logRetentionDuration is no duration")
    boundary = _boundary(objects, before_ms, oldest_read)
    if boundary is None:
        return Expired()
    if "checkpointProtection" in features_of(protocol) and boundary < protected_before(metadata):
        return Expired(kept=f"the log before version {protected_before(metadata)} goes as a whole ({_PROTECTED})")
    return Expired(boundary, _versions_before(boundary, objects), _checkpoints_before(boundary, objects))


def protected_before(metadata: Metadata) -> int:
    found = metadata.configuration.get(_PROTECTED, "0").strip()
    return int(found) if found.isdecimal() else 0


def young_sidecar_ms(now_ms: int) -> int:
    """A sidecar that is younger may belong to a checkpoint that is being written: a day, as of midnight."""
    return now_ms // DAY_MS * DAY_MS - DAY_MS


def _boundary(objects: Sequence[ObjectInfo], before_ms: int, oldest_read: int | None) -> int | None:
    listing = arrange(objects)
    last_old = None
    # Clocks differ: where times go back, what follows a young commit is young.
    for version, info in zip(listing.commits, listing.commit_files, strict=True):
        if info.modified_ms > before_ms:
            break
        last_old = version
    if last_old is None:
        return None
    limit = last_old if oldest_read is None else min(last_old, oldest_read)
    found = next((each.version for each in listing.checkpoints if each.version <= limit), None)
    if found is None or [each for each in listing.commits if each >= found] != list(
        range(found, listing.commits[-1] + 1)
    ):
        # Where a commit after the checkpoint is missing, nobody knows what else is wrong.
        return None
    return found


def _versions_before(boundary: int, objects: Sequence[ObjectInfo]) -> tuple[str, ...]:
    # A compacted file that begins with the boundary spans it, and the versions that it stands for are all there.
    commits = _named(_COMMIT_OR_CHECKSUM, boundary - 1, objects)
    return tuple(path for _, path in sorted((*commits, *_named(_COMPACTED, boundary, objects))))


def _checkpoints_before(boundary: int, objects: Sequence[ObjectInfo]) -> tuple[str, ...]:
    """Also those of which parts are missing."""
    return tuple(path for _, path in sorted(_named(_CHECKPOINT, boundary - 1, objects)))


def _named(pattern: re.Pattern[str], last: int, objects: Sequence[ObjectInfo]) -> list[tuple[int, str]]:
    """Version and path of the objects that are named so, up to version `last`."""
    matches = ((pattern.fullmatch(info.path[len(LOG) + 1 :]), info.path) for info in objects)
    return [(int(match[1]), path) for match, path in matches if match and int(match[1]) <= last]
