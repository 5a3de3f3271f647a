"""Which errors of a committer are right: it has to say no loudly where it must, and to nobody else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lakecommit.errors import (
    CommitFailed,
    ContradictoryState,
    CorruptState,
    InvalidInput,
    LakecommitError,
    LocalDiskFailed,
    SchemaMismatch,
    StoreError,
)
from lakecommit.progress.table import NOT_SEALED
from lakecommit.restarting.presence import FilesGone
from lakecommit.state.stored import ManifestMissing

from .process import Process
from .world import World


def is_justified(
    error: LakecommitError, process: Process, queries: Iterable[str], *, troubled: bool, stopped: bool
) -> bool:
    """Whether a driver of the queries of `queries` may have met `error`.

    It was `stopped` where an epoch of an earlier run may still be under way.
    """
    profile = process.world.profile
    # The table has forgotten, at some time, how far one of them was.
    forgotten = any(query in process.world.model.log.once_forgotten for query in queries)
    # Somebody else may have moved a query on while an epoch of it was being sealed, or the log.
    disturbed = stopped or not process.alone or bool(process.sleeps and profile.clean_log)
    damaged = any(file in process.world.model.vacuumed for query in queries for file in _files_of(process, query))
    return (
        (isinstance(error, StoreError) and troubled)
        or process.world.model.log.is_made_anew
        or (isinstance(error, FilesGone) and damaged)
        or (isinstance(error, CommitFailed) and "a vacuum of" in str(error) and process.world.vacuum_on)
        or (isinstance(error, ContradictoryState) and (forgotten or not process.alone))
        # The first version of a query was written over after somebody had compacted its files.
        or (isinstance(error, ContradictoryState) and "its mark is not" in str(error) and bool(profile.overwrites))
        # Another zombie's seal may stand in the place of one that was released, for files that are long gone.
        or (isinstance(error, ManifestMissing) and forgotten and not process.alone)
        # Somebody else has created the table since, for other rows.
        or (isinstance(error, SchemaMismatch) and process.knew_no_table and NOT_SEALED in str(error))
        # Another driver has taken over what Spark's sink began, and has gone on: its files have no footer of Spark's.
        or (isinstance(error, InvalidInput) and "no Parquet file that Spark wrote" in str(error) and not process.alone)
        # Spark's sink has come in between the look at the log and that at the files.
        or (isinstance(error, InvalidInput) and "files that no log names" in str(error) and not process.alone)
        or (isinstance(error, LocalDiskFailed) and profile.disk_full > 0)
        or (isinstance(error, CorruptState) and profile.disk_damage > 0 and "local segment" in str(error))
        or (isinstance(error, CommitFailed) and "changed while its epoch" in str(error) and disturbed)
    )


def _files_of(process: Process, query: str) -> Iterator[str]:
    return (file for (name, _), seal in process.world.model.seals.items() if name == query for file in seal.files)


def is_untold(error: LakecommitError, world: World, query: str) -> bool:
    """Whether epochs are lost of which the log, which was cleaned up since, cannot tell any more why; or whose first
    version was written over after somebody had compacted their files."""
    if world.profile.overwrites and "its mark is not" in str(error):
        return True
    cleaned = bool(world.counts.get("log versions cleaned up"))
    return cleaned and world.model.has_lost(query) and "does not go back far enough" in str(error)
