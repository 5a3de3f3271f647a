"""What a query has staged, copied to a local directory, so that nothing is lost when it is given up."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakecommit.errors import ContradictoryState, CorruptState
from lakecommit.formats.base import marks_of
from lakecommit.model import DataFile, Epoch, Pending, QueryId
from lakecommit.progress.table import ReadTable
from lakecommit.state.stored import (
    NamedManifest,
    ReadState,
    checked_manifest,
    list_manifests,
    list_sealed_epochs,
    read_pending,
    read_seal,
)
from lakecommit.storage.base import Found, Get, GetRange

EXPORT_CHUNK_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Exported:
    """`gone` are files that the store does not have; `problems` say what was copied and is not whole."""

    gone: tuple[DataFile, ...]
    problems: tuple[str, ...]


async def staged_epochs(store: ReadState, table_format: ReadTable, query: QueryId) -> tuple[list[Pending], list[str]]:
    """The sealed epochs after the own mark whose files the log does not name, and what is wrong with others."""
    state = await table_format.open()
    own = marks_of(state, query).own
    manifests = await list_manifests(store, query)
    staged: list[Pending] = []
    problems: list[str] = []
    for epoch in await list_sealed_epochs(store, query):
        if own is not None and epoch <= own:
            continue
        try:
            found = await read_pending(store, (await read_seal(store, query, epoch)).seal)
            staged += [found] if found.files else []
        except (CorruptState, ContradictoryState) as error:
            problems.append(
                f"epoch {epoch}: {error}; the files of all of its attempts are taken, which may repeat rows"
            )
            staged.append(await _all_attempts(store, query, epoch, manifests.get(epoch, ()), problems))
    if state is None or not staged:
        return staged, problems
    try:
        named = await table_format.named([file.path for each in staged for file in each.files])
    except CorruptState as error:
        return staged, [*problems, f"some of the files may be in the table already: {error}"]
    return [each for each in staged if not any(file.path in named for file in each.files)], problems


async def export(
    store: GetRange, files: Sequence[DataFile], directory: Path, progress: Callable[[DataFile], None]
) -> Exported:
    """Copies data files to `directory`, each below the path that it has in the table.

    One that is shorter than its manifest says is copied as it is, and told.
    """
    gone: list[DataFile] = []
    for file in files:
        target = directory / file.path
        if await store.size(file.path) is None:
            gone.append(file)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            aside = target.with_name(f"{target.name}.part")
            with aside.open("wb") as body:
                for start in range(0, file.size_bytes, EXPORT_CHUNK_BYTES):
                    length = min(EXPORT_CHUNK_BYTES, file.size_bytes - start)
                    body.write(await store.get_range(file.path, start, length))
            os.replace(aside, target)
        progress(file)
    return Exported(tuple(gone), tuple(_wrong_sizes([file for file in files if file not in gone], directory)))


async def _all_attempts(
    store: Get, query: QueryId, epoch: Epoch, manifests: Sequence[NamedManifest], problems: list[str]
) -> Pending:
    """The files of an epoch of which nobody can say who won. What cannot be read is added to `problems`."""
    files: list[DataFile] = []
    for named in manifests:
        try:
            found = await store.get(named.path)
            if isinstance(found, Found):
                files += checked_manifest(found.body, named.attempt, named.number).files
        except CorruptState as error:
            problems.append(f"epoch {epoch}: {error}")
    return Pending(query, epoch, None, tuple(files))


def _wrong_sizes(files: Sequence[DataFile], directory: Path) -> list[str]:
    sizes = [(file, (directory / file.path).stat().st_size) for file in files]
    return [
        f"{file.path} has {length} bytes, but its manifest says {file.size_bytes}: it is damaged"
        for file, length in sizes
        if length != file.size_bytes
    ]
