"""What people want to know of a directory: what its log says, and what is wrong with it, or will be."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lakecommit.commands import command
from lakecommit.errors import InvalidInput
from lakecommit.formats.history import Doubt
from lakecommit.formats.parquet.lines import is_file, lines_of, path_in
from lakecommit.formats.parquet.log import LogStore, list_log
from lakecommit.formats.parquet.marks import marks_in
from lakecommit.formats.parquet.names import parsed_path
from lakecommit.formats.parquet.record import Record
from lakecommit.formats.parquet.state import ParquetState
from lakecommit.formats.plan import BATCH
from lakecommit.storage.base import Found

# What a line of a file has, as they mostly are, and from how many files on a compact takes long.
LINE_BYTES = 245
MANY_FILES = 300_000
# A larger compact is nothing to look at.
MAX_SHOWN_BYTES = 8 * 1024**2


def doubts(state: ParquetState, location: str) -> Sequence[Doubt]:
    found: list[Doubt] = []
    if state.holes:
        said = ", ".join(map(str, state.holes[:5])) + (", …" if len(state.holes) > 5 else "")
        found.append(
            Doubt(
                f"the log has no entry {said}, though later ones are there: Spark's readers fail",
                "start the query again, which puts what is missing; or, without it: "
                f"{command('recover', location, '--apply')}",
                readable=False,
            )
        )
    if state.log_bytes >= MANY_FILES * LINE_BYTES:
        batch = state.record.owner == BATCH
        when = "each write" if batch else f"each compact, which comes every {state.record.interval} epochs,"
        found.append(
            Doubt(
                f"the log names about {state.log_bytes // LINE_BYTES:,} files, and {when} puts all these lines anew, "
                f"{state.log_bytes // 1024**2:,} MiB",
                "write fewer and larger files, or go on in a new directory; the log of a Delta table does not grow so",
            )
        )
    return found


async def log_objects(store: LogStore, limit: int) -> Sequence[str]:
    """The newest record, and then the newest entries."""
    listing = await list_log(store)
    records = [listing.records[max(listing.records)].path] if listing.records else []
    infos = [listing.info(number) for number in sorted(listing.numbers, reverse=True)[: limit - len(records)]]
    return [*records, *(info.path for info in infos if info is not None)]


async def decoded(store: LogStore, path: str) -> Mapping[str, Any] | None:
    parsed = parsed_path(path)
    size_bytes = None if parsed is None else await store.size(path)
    if parsed is None or size_bytes is None:
        return None
    kind, number = parsed
    name = f"{store.location}/{path}"
    if size_bytes > MAX_SHOWN_BYTES:
        raise InvalidInput(
            f"{name} has {size_bytes:,} bytes, too many to be shown; to see the files that are committed: "
            f"{command('files', store.location)}"
        )
    found = await store.get(path)
    if not isinstance(found, Found):
        return None
    if kind == "record":
        return _record(Record.from_json(found.body, number, name))
    lines = lines_of(found.body, name)
    marks = {application: mark.version for application, mark in marks_in(found.body).items()}
    return {
        "kind": kind,
        "number": number,
        "files": [_file(line) for line in lines if is_file(line)],
        **({"marks": marks} if marks else {}),
    }


def _record(record: Record) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(record.to_json())
    return {"kind": "record", "number": record.number, **said}


def _file(line: bytes) -> dict[str, Any]:
    said = json.loads(line)
    return {"path": path_in(line), "sizeBytes": said["size"], "modifiedMs": said["modificationTime"]}
