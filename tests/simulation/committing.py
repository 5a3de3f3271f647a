"""A process's committer, and what it is asked for."""

from __future__ import annotations

import json
from collections.abc import Sequence

from lakecommit.drafts import TableSettings
from lakecommit.formats.delta import DeltaFormat
from lakecommit.listening.registry import Listeners
from lakecommit.listening.table import Listening
from lakecommit.pending_files import PendingFiles
from lakecommit.snapshots import Snapshot
from lakecommit.table_committer import TableCommitter

from .disk import Disk
from .hearing import CallSlowly
from .process import Process
from .store import Handle

SCHEMA = json.dumps(
    {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]},
    separators=(",", ":"),
)
SETTINGS = TableSettings(partition_columns=None, properties={})
INLINE_EMPTY_EPOCHS = 16


def new_committer(
    process: Process, empty_epochs: int = 1000, patience_ms: int = 0, listeners: Listeners | None = None
) -> TableCommitter:
    world = process.world
    store = Handle(process)
    parts = {"clock": process.clock, "new_id": world.new_id, "random": world.rng.random}
    memory = world.profile.memory
    files = PendingFiles(
        limit_bytes=memory.limit_bytes, segment_bytes=memory.segment_bytes, new_file=Disk(process).new_file
    )

    def told(snapshots: Sequence[Snapshot]) -> None:
        for each in snapshots:
            world.model.told(each.part.user, each.part.epochs[-1].epoch, each.version)

    return TableCommitter(
        store,
        DeltaFormat(store, **parts),  # type: ignore[arg-type]
        **parts,  # type: ignore[arg-type]
        empty_epochs=empty_epochs,
        patience_ms=patience_ms,
        files=files,
        told=told,
        listening=Listening(
            store,
            store.location,
            listeners or Listeners(),
            clock=process.clock,
            random=world.rng.random,
            call=CallSlowly(process),
        ),
    )


def end_committer(committer: TableCommitter) -> None:
    """A worker's event loop ends with its request, and whatever still runs on it."""
    task = committer._snapshots._task
    if task is not None:
        task.cancel()
