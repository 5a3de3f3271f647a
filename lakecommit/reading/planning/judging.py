"""What a stream makes of a version of the table: reads it, passes it over, or stops before it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakecommit.errors import InvalidInput, LakecommitError, SchemaMismatch, TableMadeAnew
from lakecommit.formats.base import TableState
from lakecommit.formats.reading import VersionChange
from lakecommit.reading.planning.containing import not_contained
from lakecommit.reading.types import readable
from lakecommit.schema import Struct, parse


@dataclass(frozen=True, slots=True)
class Removes:
    """What is to be done with versions that remove rows, as in Delta.

    With `skip_changes` they are passed over, with what they add. With `ignore_changes` what they add is read: rows that
    were only moved to another file come again. With `ignore_deletes` those that only remove are passed over.
    """

    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_changes: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What a stream expects of every version. With `chosen` its columns were named, and others may come."""

    location: str
    schema: Struct
    chosen: bool
    removes: Removes = Removes()


def reads(change: VersionChange, reading: Reading) -> bool:
    """Whether the rows that it added are read. Raises `InvalidInput` if it removed rows and nobody said what to do
    about that."""
    gone = next((file.path for file in change.removes() if file.data_change), None)
    if gone is None:
        return True
    if reading.removes.skip_changes:
        return False
    adds = any(new for _, new in change.adds())
    if adds and not reading.removes.ignore_changes:
        raise InvalidInput(
            f"{_which(change)} of the table at {reading.location} has changed or replaced rows (it removed "
            f"{gone}), and a stream reads what is added; set skipChangeCommits=true to pass such versions over, "
            "ignoreChanges=true to read all that they add, rows again that were only moved, or start anew with a new "
            "checkpointLocation"
        )
    if not adds and not (reading.removes.ignore_changes or reading.removes.ignore_deletes):
        raise InvalidInput(
            f"{_which(change)} of the table at {reading.location} has removed rows (with {gone}), and a stream reads "
            "what is added; set ignoreDeletes=true to go on without them, or start anew with a new checkpointLocation"
        )
    return True


def refusal(state: TableState, table_id: str, reading: Reading) -> LakecommitError | None:
    """Why a stream that has read `table_id` cannot read the table as it is at `state`."""
    if state.table_id != table_id:
        return TableMadeAnew(
            f"the table at {reading.location} was made anew: its id was {table_id} and is {state.table_id} at version "
            f"{state.version}, so that nobody can tell which of its rows were read; start the query with a new "
            "checkpointLocation"
        )
    problems = not_contained(readable(parse(state.schema)), reading.schema, chosen=reading.chosen)
    if not problems:
        return None
    return SchemaMismatch(
        f"the schema of the table at {reading.location} has changed at version {state.version}, under the running "
        f"query: {_some(problems)}; the rows before it are read. Start the query again, from spark.readStream on, and "
        "it goes on with the new schema"
    )


def _which(change: VersionChange) -> str:
    return f"version {change.version}" + (f" ({change.operation})" if change.operation else "")


def _some(problems: Iterable[str]) -> str:
    return "; ".join(list(problems)[:5])
