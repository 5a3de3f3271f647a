"""What a query has staged and will not be committed: exported, so that nothing is lost, and given up."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType

from lakecommit.cleaning import RELEASE_AGE_MS
from lakecommit.cli.output import size, table, text
from lakecommit.cli.progress import progress_bar
from lakecommit.cli.recover_queries import delta_format, find_queries, new_id
from lakecommit.clock import Clock
from lakecommit.errors import CorruptState, InvalidInput, LakecommitError
from lakecommit.formats.base import TableFormat, marks_of
from lakecommit.housekeeping.objects import list_manifests, read_files, without_the_tables
from lakecommit.housekeeping.queries import Cleaned
from lakecommit.model import CommitUser, DataFile, Epoch, Pending
from lakecommit.recovery import discard, export
from lakecommit.replay import list_sealed_epochs, read_pending, read_seal
from lakecommit.storage.base import Store


@dataclass(frozen=True, slots=True)
class ExportOutput:
    """`gone` are files that a manifest names and the store does not have; `problems` are by epoch."""

    location: str
    user: CommitUser
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
            "user": self.user,
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
            parts.append(text(f"{amount} of epochs {which} of query {self.user} are in {self.directory}"))
            parts.append(text(f"what they are is in {export_record(self.user)}; the table was not touched"))
        else:
            parts.append(text(f"query {self.user} has nothing staged that could be exported"))
        parts += [text(f"gone from the store: {path}", "red") for path in self.gone]
        parts += [text(problem, "red") for problem in self.problems]
        return Group(*parts)


@dataclass(frozen=True, slots=True)
class DiscardOutput:
    """What a query has staged. `files` are those that the table does not name. `cleaned` says what is deleted."""

    location: str
    user: CommitUser
    epochs: tuple[Epoch, ...]
    files: int
    size_bytes: int
    manifests: int
    seals: int
    problems: tuple[str, ...]
    cleaned: Cleaned | None

    @property
    def well(self) -> bool:
        return not self.problems and (self.cleaned is None or self.cleaned.unconfirmed == 0)

    def data(self) -> dict[str, Any]:
        return {
            "location": self.location,
            "user": self.user,
            "applied": self.cleaned is not None,
            "epochs": list(self.epochs),
            "files": self.files,
            "sizeBytes": self.size_bytes,
            "manifests": self.manifests,
            "seals": self.seals,
            "unconfirmed": 0 if self.cleaned is None else self.cleaned.unconfirmed,
            "problems": list(self.problems),
        }

    def render(self) -> RenderableType:
        what = "would be deleted" if self.cleaned is None else "deleted"
        rows = [
            ("epochs given up", ranges(self.epochs) or None, ""),
            (f"files {what}", self.files, size(self.size_bytes)),
            (f"manifests {what}", self.manifests, ""),
            (f"seals {what}", self.seals, "the newest stays, as evidence"),
        ]
        parts: list[RenderableType] = [text(self.location, "bold"), text(f"query {self.user}"), text("")]
        parts.append(table(("", "#", ""), rows))
        parts += [text(problem, "red") for problem in self.problems]
        if self.cleaned is None:
            advice = "nothing was changed; save the files with --export DIR first if anybody may want the rows"
            parts += [text(""), text(f"{advice}; add --apply to give them up")]
        elif self.cleaned.unconfirmed:
            parts.append(text(f"{self.cleaned.unconfirmed} deletions are not confirmed; run the same again", "red"))
        return Group(*parts)


def export_record(user: CommitUser) -> str:
    """The name of the file that says what was exported of a query."""
    return f"lakecommit-export-{user}.json"


def ranges(epochs: Sequence[int]) -> str:
    """`3-5, 9` for 3, 4, 5 and 9."""
    runs = [
        [number for _, number in run]
        for _, run in groupby(enumerate(sorted(epochs)), key=lambda numbered: numbered[1] - numbered[0])
    ]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


async def export_query(store: Store, clock: Clock, user: CommitUser, directory: Path, *, as_json: bool) -> ExportOutput:
    """Copies what is sealed and not in the table, epoch by epoch; one that cannot be read does not stop the others."""
    await find_queries(store, user)
    _refuse_inside(directory, store.location)
    staged, problems = await _staged(store, delta_format(store, clock), user)
    files = [file for each in staged for file in each.files]
    try:
        with progress_bar("exporting", len(files), as_json=as_json) as step:
            gone = await export(store, files, directory, lambda _: step())
        problems += _wrong_sizes([file for file in files if file not in gone], directory)
        output = ExportOutput(
            store.location, user, str(directory), tuple(staged), tuple(file.path for file in gone), tuple(problems)
        )
        if files:
            _write_record(output, directory)
    except OSError as error:
        raise InvalidInput(f"{directory} cannot be written: {error.strerror}; name another directory") from None
    return output


async def discard_query(store: Store, clock: Clock, user: CommitUser, *, apply: bool) -> DiscardOutput:
    """Shows what giving up a query would delete, or does it. Raises where the query wrote too recently for that."""
    await find_queries(store, user)
    table_format = delta_format(store, clock)
    sealed = await list_sealed_epochs(store, user)
    by_epoch = await list_manifests(store, user)
    manifests = [named for group in by_epoch.values() for named in group]
    young = [named for named in manifests if not named.is_old(clock.wall_ms())]
    if young:
        since = (clock.wall_ms() - max(named.modified_ms for named in young)) // 60_000
        raise InvalidInput(
            f"query {user} has written {since} minutes ago and may still be running; nothing was changed; stop it and "
            f"try again when {RELEASE_AGE_MS // 60_000} minutes have passed since"
        )
    lost = await without_the_tables(table_format, await read_files(store, manifests))
    marks = marks_of(await table_format.open(), user)
    given_up = {epoch for epoch in {*sealed, *by_epoch} if marks.own is None or epoch > marks.own}
    problems = tuple(f"{problem}; it is kept" for problem in lost.damaged.values())
    cleaned = await discard(store, table_format, user, clock=clock, new_id=new_id) if apply else None
    return DiscardOutput(
        location=store.location,
        user=user,
        epochs=tuple(sorted(given_up)),
        files=len(lost.paths) if cleaned is None else cleaned.files,
        size_bytes=lost.size_bytes,
        manifests=len(manifests) - len(lost.damaged) if cleaned is None else cleaned.manifests,
        seals=(0 if lost.damaged else max(0, len(sealed) - 1)) if cleaned is None else cleaned.seals,
        problems=problems,
        cleaned=cleaned,
    )


async def _staged(store: Store, table_format: TableFormat[Any], user: CommitUser) -> tuple[list[Pending], list[str]]:
    """The sealed epochs after the own mark whose files the log does not name, and what is wrong with others."""
    state = await table_format.open()
    own = marks_of(state, user).own
    staged: list[Pending] = []
    problems: list[str] = []
    for epoch in await list_sealed_epochs(store, user):
        if own is not None and epoch <= own:
            continue
        try:
            found = await read_pending(store, (await read_seal(store, user, epoch)).seal)
            staged += [found] if found.files else []
        except LakecommitError as error:
            problems.append(f"epoch {epoch}: {error}")
    if state is None or not staged:
        return staged, problems
    try:
        named = (await table_format.named([file.path for each in staged for file in each.files])).paths
    except CorruptState as error:
        return staged, [*problems, f"some of the files may be in the table already: {error}"]
    return [each for each in staged if not any(file.path in named for file in each.files)], problems


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
    record = directory / export_record(output.user)
    aside = record.with_name(f"{record.name}.part")
    aside.write_text(json.dumps(output.data(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(aside, record)
