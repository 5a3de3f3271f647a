"""Writes a checkpoint: all that a version of the table is, as one classic file, whole or not at all.

A wrong checkpoint, once the log before it is cleaned up, is a lost table. So what is written is read back and compared
with a state that was read in another way, every removal must have met its file, and the log must still be the one that
was read when the file is created.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import IO, Any

from lakecommit.clock import Clock
from lakecommit.errors import CorruptState, StoreError
from lakecommit.formats.base import FormatStore
from lakecommit.formats.delta.log.actions import (
    CLUSTERING_DOMAIN,
    ROW_TRACKING_DOMAIN,
    Actions,
    clustering_columns,
    collect,
    row_id_high_watermark,
)
from lakecommit.formats.delta.log.checkpoint import OTHER_COLUMNS
from lakecommit.formats.delta.log.checkpoint_rows import CheckpointRows
from lakecommit.formats.delta.log.listing import hinted_version, list_log_from
from lakecommit.formats.delta.log.live import CheckpointBase, LiveFiles, LogAt, log_at
from lakecommit.formats.delta.log.names import LAST_CHECKPOINT, CheckpointFiles, checkpoint_path
from lakecommit.formats.delta.log.other_actions import OtherActions
from lakecommit.formats.delta.log.ranged import read_rows
from lakecommit.formats.delta.schema.protocol import unknown_to_us
from lakecommit.formats.delta.state import DeltaProtocol, DeltaState, Metadata
from lakecommit.formats.delta.upkeep.checkpoint_file import CheckpointFile, FinishedFile
from lakecommit.formats.delta.upkeep.retention import Retention, retention_of
from lakecommit.formats.local_files import unnamed_file
from lakecommit.formats.upkeep import Checkpointed, LeftToOthers
from lakecommit.storage.answers import transfer_ms
from lakecommit.storage.base import AlreadyThere, Created, ObjectInfo, Unknown
from lakecommit.storage.local import remove_checksum
from lakecommit.storage.policy import DEFAULT_POLICY

# The versions of one step have no more bytes together, unless one alone has: their keys are in memory.
STEP_BYTES = 64 * 1024 * 1024


def why_left(protocol: DeltaProtocol, metadata: Metadata) -> str | None:
    """Why a table's checkpoints are left to others; None where they are not."""
    if unknown := unknown_to_us(protocol):
        return f"the table has features that lakecommit does not support: {unknown}"
    if metadata.configuration.get("delta.checkpoint.writeStatsAsJson", "true").strip().lower() == "false":
        return "the table wants statistics in parsed form alone (delta.checkpoint.writeStatsAsJson=false)"
    return None


async def write_checkpoint(
    store: FormatStore, state: DeltaState, *, clock: Clock, random: Callable[[], float], local_dir: str | None = None
) -> Checkpointed | LeftToOthers:
    """Writes the checkpoint of `state`, which was read from the log just now, and has `_last_checkpoint` name it.

    Postcondition: `Checkpointed` if a classic checkpoint of this version is there, by whomever. Raises `CorruptState`
    where what was read does not add up, and then nothing is written.
    """
    if reason := why_left(state.protocol, state.metadata):
        return LeftToOthers(reason)
    now_ms, retention = clock.wall_ms(), retention_of(state.metadata)
    with ExitStack() as files:
        log = whole = await log_at(store, state.version, local_dir)
        if log.checkpoint == state.version:
            return Checkpointed(state.version, created=False)
        finished = None
        for tail in steps(log.tail):
            log = replace(log, tail=tail)
            live = LiveFiles(store, log, removed_after_ms=retention.removed_after_ms(now_ms))
            finished = await _write(live, files.enter_context(unnamed_file(local_dir)), retention, now_ms)
            if live.statistics_lost:
                return LeftToOthers("the newest checkpoint has statistics in parsed form alone")
            if not live.counts.agree or finished.files != live.counts.live:
                raise _wrong(store, state, f"its files do not add up ({live.counts}, {finished.files} written)")
            log = await _after(finished, log)
        assert finished is not None, "versions follow the checkpoint"
        rows = await read_rows(finished, "", finished.size_bytes, OTHER_COLUMNS)
        if problem := contradiction(state, collect(rows), retention, now_ms):
            raise _wrong(store, state, problem)
        if not await _is_unchanged(store, whole):
            return LeftToOthers("the log was changed or cleaned up while it was read; the next checkpoint has it all")
        created = await _create(store, checkpoint_path(state.version), finished.body(), clock, random)
        await _point_to(store, state.version, finished)
        return Checkpointed(state.version, finished.files, finished.size_bytes, created)


def steps(tail: Sequence[ObjectInfo]) -> Iterator[tuple[ObjectInfo, ...]]:
    """The versions in order, as many at a time as fit into memory."""
    step: list[ObjectInfo] = []
    for info in tail:
        if step and sum(each.size_bytes for each in step) + info.size_bytes > STEP_BYTES:
            yield tuple(step)
            step = []
        step.append(info)
    if step:
        yield tuple(step)


def contradiction(state: DeltaState, written: Actions, retention: Retention, now_ms: int) -> str | None:
    """In what a checkpoint differs from the state of its version, but for files; None where it does not."""
    kept = {
        application_id: mark
        for application_id, mark in state.txns.items()
        if not retention.has_expired({"lastUpdated": state.txn_times.get(application_id)}, now_ms)
    }
    pairs = {
        "protocol": (written.protocol, state.protocol),
        "metadata": (written.metadata, state.metadata),
        "marks": (written.txns, kept),
        "row ids": (row_id_high_watermark(written.domains.get(ROW_TRACKING_DOMAIN)), state.row_id_high_watermark),
        "clustering": (clustering_columns(written.domains.get(CLUSTERING_DOMAIN)), state.clustering_columns),
    }
    differing = [name for name, (one, other) in pairs.items() if one != other]
    return f"its {' and '.join(differing)} would not be those of the table" if differing else None


def kept_actions(others: OtherActions, retention: Retention, now_ms: int) -> list[Mapping[str, Any]]:
    """The actions that are not about files, but for marks that expired and domains that were removed."""
    single = {"protocol": others.protocol, "metaData": others.metadata}
    return [
        *({name: action} for name, action in single.items() if action is not None),
        *({"txn": txn} for txn in others.txns.values() if not retention.has_expired(txn, now_ms)),
        *({"domainMetadata": each} for each in others.domains.values() if not each.get("removed")),
    ]


async def _write(live: LiveFiles, file: IO[bytes], retention: Retention, now_ms: int) -> FinishedFile:
    with CheckpointFile(file) as checkpoint:
        async for actions in live.read():
            checkpoint.write(actions)
        checkpoint.finish(kept_actions(live.others, retention, now_ms))
    return FinishedFile(file)


async def _after(finished: FinishedFile, log: LogAt) -> LogAt:
    """The log once `finished` stands for it up to the end of its tail. A domain that was removed before is gone."""
    info = ObjectInfo("checkpoint.parquet", finished.size_bytes, 0)
    others = await read_rows(finished, info.path, info.size_bytes, OTHER_COLUMNS)
    return replace(log, base=CheckpointBase(others, CheckpointRows(finished, CheckpointFiles(log.version, (info,)))))


async def _is_unchanged(store: FormatStore, log: LogAt) -> bool:
    """Whether all versions that were read are still there, and the same: others may have written over them."""
    listing = await list_log_from(store, log.checkpoint + 1)
    there = {info.path: (info.size_bytes, info.etag) for info in listing.commit_files}
    return all(there.get(info.path) == (info.size_bytes, info.etag) for info in log.tail)


async def _create(store: FormatStore, path: str, body: bytes, clock: Clock, random: Callable[[], float]) -> bool:
    """Creates the object if absent; whether it was. Who finds one need not look into it: it is of the same version, and
    objects appear whole."""
    backoff = DEFAULT_POLICY.backoff(clock, random, transfer_ms(len(body)))
    while True:
        outcome = await store.create(path, body)
        if isinstance(outcome, Created | AlreadyThere):
            return isinstance(outcome, Created)
        if isinstance(outcome, Unknown) and await store.size(path) is not None:
            return True
        if not await backoff.again():
            raise StoreError(f"{path} could not be created: {outcome.reason}; it is tried again with a later version")


async def _point_to(store: FormatStore, version: int, finished: FinishedFile) -> None:
    """Has the hint name this checkpoint, unless it names a newer one. A race makes a hint older, but never wrong."""
    named = await hinted_version(store)
    if named is not None and named >= version:
        return
    hint = {
        "version": version,
        "size": finished.actions,
        "sizeInBytes": finished.size_bytes,
        "numOfAddFiles": finished.files,
    }
    # Hadoop would take the hint for damaged if the checksum of the old one were still beside it.
    remove_checksum(store.location, LAST_CHECKPOINT)
    await store.put(LAST_CHECKPOINT, json.dumps(hint, separators=(",", ":")).encode())


def _wrong(store: FormatStore, state: DeltaState, problem: str) -> CorruptState:
    return CorruptState(
        f"no checkpoint of version {state.version} of {store.location} was written: {problem}; the table itself is as "
        "it was. Have another engine write a checkpoint, and report this"
    )
