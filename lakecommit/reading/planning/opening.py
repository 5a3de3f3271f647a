"""From the options of a stream to its planner. No request is made before something is asked of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from lakecommit.clock import SystemClock
from lakecommit.formats.base import TableState
from lakecommit.formats.reading import ReadFile, ReadPlan
from lakecommit.formats.versions import ReadVersions
from lakecommit.leases.taking import TakeStore
from lakecommit.leases.who import this_process
from lakecommit.options.read_declarations import LATEST, ReadOptions
from lakecommit.reading.batch import format_by_name, opened_format
from lakecommit.reading.planning import starting
from lakecommit.reading.planning.holding import HeldLeases, NoLeases
from lakecommit.reading.planning.judging import Reading, Removes
from lakecommit.reading.planning.limits import Limits
from lakecommit.reading.planning.live_process import Job, files_apart
from lakecommit.reading.planning.log_walk import Cutting
from lakecommit.reading.planning.plan import Keep
from lakecommit.reading.planning.planner import StreamPlanner, StreamSettings
from lakecommit.reading.planning.ports import Figures
from lakecommit.schema import parse
from lakecommit.storage.location import open_store, parse_location


async def open_planner(
    options: ReadOptions,
    schema: str,
    *,
    chosen: bool,
    keep: Callable[[ReadPlan], Keep],
    local_dir: str | None,
    show: Callable[[Figures], None],
) -> StreamPlanner:
    """`schema` is the query's; `chosen` says that its columns were named. `keep` says which files of a version
    are read."""
    store = open_store(options.path, options.store_options)
    table = await opened_format(options, store, SystemClock())

    def opened_again() -> tuple[TakeStore, ReadVersions]:
        again = open_store(options.path, options.store_options)
        return again, format_by_name(table.name, again, SystemClock())

    def listed_apart(state: TableState) -> AsyncIterator[Sequence[ReadFile]]:
        job = Job(options.path, table.name, state.table_id, state.version, options.store_options)
        return files_apart(job, local_dir)

    leases = HeldLeases(opened_again, options.lease_ttl_ms, this_process("stream")) if options.lease_ttl_ms else None
    settings = StreamSettings(
        Reading(
            store.location,
            parse(schema),
            chosen=chosen,
            removes=Removes(options.ignore_deletes, options.ignore_changes, options.skip_change_commits),
        ),
        Cutting(options.split_size_bytes, options.planner_memory_bytes, keep, local_dir),
        Limits(options.max_files, options.max_bytes),
        _start(options),
        options.fail_on_data_loss,
    )
    # Nobody else sees what is in memory.
    live = None if parse_location(options.path)[0] == "memory" else listed_apart
    return StreamPlanner(table, leases or NoLeases(), settings, clock=SystemClock(), live=live, show=show)


def _start(options: ReadOptions) -> starting.Start:
    version: int | str | None = options.starting_version
    return starting.Start(starting.LATEST if version == LATEST else version, options.starting_timestamp_ms)
