"""`lakecommit recover --export`: copies what a query has staged, so that nothing is lost when it is given up."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType

from lakecommit.cli.output import size, text
from lakecommit.cli.progress import progress_bar
from lakecommit.cli.tables import table_at
from lakecommit.clock import Clock
from lakecommit.epoch_ranges import listed
from lakecommit.errors import InvalidInput
from lakecommit.model import Pending, QueryId
from lakecommit.recovering.asked import find_queries
from lakecommit.recovering.export import export, staged_epochs
from lakecommit.storage.base import Store


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
            which = listed([each.epoch for each in self.epochs])
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
    staged, problems = await staged_epochs(store, await table_at(store, clock), query)
    files = [file for each in staged for file in each.files]
    try:
        with progress_bar("exporting", len(files), as_json=as_json) as step:
            exported = await export(store, files, directory, lambda _: step())
        output = ExportOutput(
            location=store.location,
            query=query,
            directory=str(directory),
            epochs=tuple(staged),
            gone=tuple(file.path for file in exported.gone),
            problems=(*problems, *exported.problems),
        )
        if files:
            _write_record(output, directory)
    except OSError as error:
        raise InvalidInput(f"{directory} cannot be written: {error.strerror}; name another directory") from None
    return output


def _refuse_inside(directory: Path, location: str) -> None:
    if os.path.isabs(location) and directory.resolve().is_relative_to(Path(location).resolve()):
        raise InvalidInput(f"{directory} is inside of the table; name a directory outside of it")


def _write_record(output: ExportOutput, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    record = directory / export_record(output.query)
    aside = record.with_name(f"{record.name}.part")
    aside.write_text(json.dumps(output.data(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(aside, record)
