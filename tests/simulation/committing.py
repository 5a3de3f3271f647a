"""A process's committer, and what it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from lakecommit.formats.base import TableState
from lakecommit.listening.registry import Listeners
from lakecommit.listening.table import Listening
from lakecommit.progress.observer import Observer, Snapshot
from lakecommit.progress.pending import PendingFiles, PendingMemory
from lakecommit.progress.settings import TableSettings
from lakecommit.service.table import ServedTable

from .disk import Disk
from .hearing import CallSlowly
from .process import Process
from .schemas import Rows
from .store import Handle
from .upkeep import keep_up_apart
from .world import World

SETTINGS = TableSettings(partition_columns=None, properties={})
INLINE_EMPTY_EPOCHS = 16


def settings_of(world: World, rows: Rows) -> TableSettings:
    interval = world.upkeep.interval
    return replace(SETTINGS, properties=world.properties, merge_schema=rows.merges, checkpoint_interval=interval)


class _Told(Observer):
    def __init__(self, world: World) -> None:
        self._world = world

    def committed(self, table: TableState, snapshots: Sequence[Snapshot]) -> None:
        for each in snapshots:
            self._world.model.told(each.part.query, each.part.epochs[-1].epoch, each.version)


def new_committer(
    process: Process,
    empty_epochs: int = 1000,
    patience_ms: int = 0,
    listeners: Listeners | None = None,
    *,
    keeps_up: bool = False,
) -> ServedTable:
    """`keeps_up` says that it keeps the log short, in seeds where that is done."""
    world = process.world
    store = Handle(process)
    parts = {"clock": process.clock, "new_id": world.new_id, "random": world.rng.random}
    memory = world.profile.memory
    files = PendingFiles(
        memory=PendingMemory(memory.limit_bytes), segment_bytes=memory.segment_bytes, new_file=Disk(process).new_file
    )

    return ServedTable(
        store,
        world.format.open(store, **parts),
        **parts,  # type: ignore[arg-type]
        empty_epochs=empty_epochs,
        patience_ms=patience_ms,
        files=files,
        observers=(_Told(world),),
        keep_up=partial(keep_up_apart, process) if keeps_up and world.upkeep.on else None,
        listening=Listening(
            store,
            store.location,
            listeners or Listeners(),
            clock=process.clock,
            random=world.rng.random,
            call=CallSlowly(process),
        ),
    )


async def tidy(process: Process, committer: ServedTable) -> None:
    """A cleaning step, after which what was written over is made up for, unless the store failed."""
    world, began_ms, failed = process.world, process.world.loop.now, process.world.store_fault
    await committer.tidy()
    if not failed:
        world.model.log.batches.tidied(process, began_ms)


def end_committer(committer: ServedTable) -> None:
    """A worker's event loop ends with its request, and whatever still runs on it."""
    committer._snapshots.end()
