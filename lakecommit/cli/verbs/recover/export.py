"""`lakecommit recover --export`: copies what a query has staged, so that nothing is lost when it is given up."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType

from lakecommit.cli.output import size, text
from lakecommit.cli.progress import progress_bar
from lakecommit.cli.tables import table_at
from lakecommit.cli.verbs.recover.queries import find_queries, ranges
from lakecommit.clock import Clock
from lakecommit.errors import ContradictoryState, CorruptState, InvalidInput
from lakecommit.formats.base import marks_of
from lakecommit.model import DataFile, Epoch, Pending, QueryId
from lakecommit.progress.table import ReadTable
from lakecommit.recovering.recovery import export
from lakecommit.state.stored import (
    NamedManifest,
    checked_manifest,
    list_manifests,
    list_sealed_epochs,
    read_pending,
    read_seal,
)
from lakecommit.storage.base import Found, Get, Store


@dataclass(frozen=True, slots=True)
class ExportOutput:
    """`gone` are files that a manifest names and the store does not have; `problems` are by epoch."""

    location: str
    query: QueryId
    directory: str
    epochs: tuple[Pending, ...]
    gone: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def well(self) -> bool:
        return not (self.gone or self.problems)

    def data(self) -> dict[str, Any]:
        return {
            "location": self.location,
            "query": self.query,
            "directory": self.directory,
            "epochs": [
                {
                    "epoch": each.epoch,
                    "files": [
                        {
                            "path": file.path,
                            "partitionValues": dict(file.partition_values),
                            "rows": file.rows,
                            "sizeBytes": file.size_bytes,
                            "exported": file.path not in self.gone,
                        }
                        for file in each.files
                    ],
                }
                for each in self.epochs
            ],
            "problems": list(self.problems),
        }

    def render(self) -> RenderableType:
        files = [file for each in self.epochs for file in each.files if file.path not in self.gone]
        parts: list[RenderableType] = [text(self.location, "bold")]
        if files:
            rows, size_bytes = sum(file.rows for file in files), sum(file.size_bytes for file in files)
            amount = f"{len(files):,} files, {rows:,} rows, {size(size_bytes)}"
            which = ranges([each.epoch for each in self.epochs])
            parts.append(text(f"{amount} of epochs {which} of query {self.query} are in {self.directory}"))
            parts.append(text(f"what they are is in {export_record(self.query)}; the table was not touched"))
        else:
            parts.append(text(f"query {self.query} has nothing staged that could be exported"))
        parts += [text(f"gone from the store: {path}", "red") for path in self.gone]
        parts += [text(problem, "red") for problem in self.problems]
        return Group(*parts)


def export_record(query: QueryId) -> str:
    """The name of the file that says what was exported of a query."""
    return f"lakecommit-export-{query}.json"


async def export_query(store: Store, clock: Clock, query: QueryId, directory: Path, *, as_json: bool) -> ExportOutput:
    """Copies what is sealed and not in the table, epoch by epoch; one that cannot be read does not stop the others."""
    await find_queries(store, query)
    _refuse_inside(directory, store.location)
    staged, problems = await _staged(store, await table_at(store, clock), query)
    files = [file for each in staged for file in each.files]
    try:
        with progress_bar("exporting", len(files), as_json=as_json) as step:
            gone = await export(store, files, directory, lambda _: step())
        problems += _wrong_sizes([file for file in files if file not in gone], directory)
        output = ExportOutput(
            store.location, query, str(directory), tuple(staged), tuple(file.path for file in gone), tuple(problems)
        )
        if files:
            _write_record(output, directory)
    except OSError as error:
        raise InvalidInput(f"{directory} cannot be written: {error.strerror}; name another directory") from None
    return output


async def _staged(store: Store, table_format: ReadTable, query: QueryId) -> tuple[list[Pending], list[str]]:
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


def _refuse_inside(directory: Path, location: str) -> None:
    if os.path.isabs(location) and directory.resolve().is_relative_to(Path(location).resolve()):
        raise InvalidInput(f"{directory} is inside of the table; name a directory outside of it")


def _wrong_sizes(files: Sequence[DataFile], directory: Path) -> list[str]:
    """What is there and not whole is exported as it is, and told."""
    sizes = [(file, (directory / file.path).stat().st_size) for file in files]
    return [
        f"{file.path} has {length} bytes, but its manifest says {file.size_bytes}: it is damaged"
        for file, length in sizes
        if length != file.size_bytes
    ]


def _write_record(output: ExportOutput, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    record = directory / export_record(output.query)
    aside = record.with_name(f"{record.name}.part")
    aside.write_text(json.dumps(output.data(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(aside, record)
