"""Where a stream starts: with a snapshot or with a version; or behind versions that are gone."""

from __future__ import annotations

from dataclasses import dataclass

from lakecommit.errors import InvalidInput, SchemaMismatch
from lakecommit.formats.base import TableState
from lakecommit.formats.versions import ReadVersions
from lakecommit.reading.planning.judging import Reading
from lakecommit.schema import parse

LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Start:
    """`version` is the first one whose changes are read, or `LATEST` for the next one that is committed; `time_ms`
    stands for the first that was committed then or later. Neither: a snapshot of the newest version."""

    version: int | str | None = None
    time_ms: int | None = None


async def first_version(start: Start, versions: ReadVersions, newest: TableState) -> int | None:
    """The first version that is read as a change; None for a snapshot. Raises `InvalidInput` if there is no such
    version yet."""
    if newest.version < 0:
        raise InvalidInput(
            f"nothing is committed to the table at {versions.location} yet; start the query once there is something"
        )
    if start.version == LATEST:
        return newest.version + 1
    if isinstance(start.version, int):
        if start.version > newest.version + 1:
            raise InvalidInput(
                f"startingVersion is {start.version}, and the newest version of the table at {versions.location} is "
                f"{newest.version}; name one up to {newest.version + 1}, or latest for what comes next"
            )
        return start.version
    if start.time_ms is None:
        return None
    try:
        before = await versions.version_at(start.time_ms - 1)
    except InvalidInput:
        # It lies before the whole log, or the log was cleaned up: then it has to lead to its first version.
        if await versions.at(0) is None:
            raise
        return 0
    if before >= newest.version:
        raise InvalidInput(
            f"nothing was committed to the table at {versions.location} at startingTimestamp or later: its newest "
            f"version, {newest.version}, is older; name an earlier time, or startingVersion=latest for what comes next"
        )
    return before + 1


def refuse_unknown(start: Start, table: TableState, reading: Reading) -> None:
    """Raises `SchemaMismatch` for a column of the query that `table`, which the stream begins with, does not have: it
    would have nothing but nulls. Versions of before may have others."""
    if start.version not in (None, LATEST) or start.time_ms is not None:
        return
    known = {field.name.lower() for field in parse(table.schema).fields}
    if missing := [field.name for field in reading.schema.fields if field.name.lower() not in known]:
        raise SchemaMismatch(
            f"the schema that was given does not fit the table at {reading.location}: {', '.join(missing)} is not in "
            "the table; leave it out, or write it as the table does"
        )


async def first_left(versions: ReadVersions, gone: int, newest: TableState) -> TableState:
    """The table at the first version that the log still leads to. Precondition: it does not lead to `gone`."""
    lowest = newest
    while lowest.version - gone > 1:
        middle = (gone + lowest.version) // 2
        try:
            lowest = await versions.at(middle) or lowest
        except InvalidInput:
            gone = middle
    return lowest
