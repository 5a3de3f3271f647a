"""Deletes what of a Delta log has expired. `expiry` says what that is; here it is listed, made sure of and deleted."""

from __future__ import annotations

from collections.abc import Sequence

from lakecommit.clock import Clock
from lakecommit.concurrency.parallel import in_parallel
from lakecommit.errors import CorruptState
from lakecommit.formats.base import FormatStore
from lakecommit.formats.delta.log.checkpoint import CheckpointUnreadableError, read_checkpoint
from lakecommit.formats.delta.log.checkpoint_rows import CheckpointRows
from lakecommit.formats.delta.log.file_actions import FileKind
from lakecommit.formats.delta.log.listing import list_log, list_versioned
from lakecommit.formats.delta.log.live import LiveFiles, log_at
from lakecommit.formats.delta.log.names import SIDECARS, CheckpointFiles, arrange
from lakecommit.formats.delta.state import DeltaState
from lakecommit.formats.delta.upkeep.checkpointing import why_left
from lakecommit.formats.delta.upkeep.expiry import expired, young_sidecar_ms
from lakecommit.formats.upkeep import LogCleaned, LogSurvey
from lakecommit.storage.local import remove_checksum

# As many as a bulk request takes on S3.
DELETED_AT_ONCE = 1000


async def survey_log(store: FormatStore, state: DeltaState, clock: Clock, oldest_read: int | None = None) -> LogSurvey:
    """What a checkpoint and a clean-up would do. Reads all live files."""
    live = LiveFiles(store, await log_at(store, state.version))
    async for _ in live.read():
        pass
    found = expired(await list_versioned(store, None), state.protocol, state.metadata, clock.wall_ms(), oldest_read)
    return LogSurvey(
        version=state.version,
        checkpoint=None if state.checkpoint < 0 else state.checkpoint,
        tail=state.tail,
        files=live.counts.live,
        left=why_left(state.protocol, state.metadata),
        expired=len(found),
        boundary=found.boundary,
        kept=found.kept,
    )


async def clean_log(store: FormatStore, state: DeltaState, clock: Clock, oldest_read: int | None = None) -> LogCleaned:
    """Deletes the versions before the boundary, from the oldest on, then the checkpoints before it, then sidecars that
    no checkpoint names.

    Before: `state` was read from the log just now. After: the log from the boundary on is as it was. Whoever opens the
    table at any moment in between finds a checkpoint, and all versions after it.
    """
    objects = await list_versioned(store, None)
    found = expired(objects, state.protocol, state.metadata, clock.wall_ms(), oldest_read)
    if found.boundary is None:
        return LogCleaned(kept=found.kept)
    checkpoints = [each for each in arrange(objects).checkpoints if each.version == found.boundary]
    if len(found) and (problem := await _problem_of(store, checkpoints, state)):
        return LogCleaned(kept=f"the log stays as it is: {problem}")
    deleted = unconfirmed = 0
    for paths in (found.versions, found.checkpoints, await _lost_sidecars(store, found.boundary, clock)):
        left = await _delete(store, paths)
        deleted, unconfirmed = deleted + len(paths) - left, unconfirmed + left
    return LogCleaned(deleted, found.boundary, unconfirmed)


async def _problem_of(store: FormatStore, checkpoints: Sequence[CheckpointFiles], state: DeltaState) -> str | None:
    """Why what is before these checkpoints, of one version, must not go: readers may use any of them."""
    for checkpoint in checkpoints:
        try:
            actions = (await read_checkpoint(store, checkpoint)).actions
            async for _ in CheckpointRows(store, checkpoint).read(tuple(FileKind)):
                pass
        except (CheckpointUnreadableError, CorruptState) as error:
            return str(error)
        if actions.metadata is None or actions.metadata.id != state.table_id:
            return f"checkpoint {checkpoint.version} is of another table"
    return None


async def _lost_sidecars(store: FormatStore, boundary: int, clock: Clock) -> Sequence[str]:
    """Sidecars that no checkpoint names from the boundary on, but for young ones. None where that cannot be known."""
    old_ms = young_sidecar_ms(clock.wall_ms())
    old = [info.path async for page in store.list(SIDECARS) for info in page if info.modified_ms < old_ms]
    if not old:
        return ()
    checkpoints = [each for each in (await list_log(store)).checkpoints if each.version >= boundary]
    try:
        named = await in_parallel(lambda each: CheckpointRows(store, each).sidecars(), checkpoints)
    except CorruptState:
        return ()
    kept = {path for paths in named for path in paths}
    return [path for path in sorted(old) if path not in kept]


async def _delete(store: FormatStore, paths: Sequence[str]) -> int:
    """Deletes in this order, as far as a bulk request has one; of how many it is not confirmed."""
    unconfirmed = 0
    for at in range(0, len(paths), DELETED_AT_ONCE):
        going = paths[at : at + DELETED_AT_ONCE]
        unconfirmed += len(await store.delete(going))
        for path in going:
            remove_checksum(store.location, path)
    return unconfirmed
