"""`lakecommit explain [NAME]`: what is behind an error, and what to do; the page comes with the package."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import click
from rich.console import RenderableType
from rich.text import Text

from lakecommit.cli.arguments import json_option
from lakecommit.cli.output import show, table
from lakecommit.errors import InvalidInput

PAGE = "when-something-is-wrong.md"
_HEADING = "## "


@dataclass(frozen=True, slots=True)
class Entry:
    """`about` is its first line, which says what has happened."""

    name: str
    text: str

    @property
    def about(self) -> str:
        return self.text.partition("\n\n")[0].replace("\n", " ")


@dataclass(frozen=True, slots=True)
class EntryOutput:
    entry: Entry

    def data(self) -> dict[str, Any]:
        return {"name": self.entry.name, "text": self.entry.text}

    def render(self) -> RenderableType:
        return Text.assemble((f"{self.entry.name}\n\n", "bold"), self.entry.text)


@dataclass(frozen=True, slots=True)
class EntriesOutput:
    entries: tuple[Entry, ...]

    def data(self) -> list[dict[str, Any]]:
        return [{"name": entry.name, "about": entry.about} for entry in self.entries]

    def render(self) -> RenderableType:
        return table(("", ""), [(entry.name, entry.about) for entry in self.entries])


def entries() -> dict[str, Entry]:
    """The entries of the page by name, in its order."""
    page = files("lakecommit").joinpath(PAGE).read_text("utf-8")
    _, *sections = f"\n{page}".split(f"\n{_HEADING}")
    found = [section.partition("\n") for section in sections]
    return {name: Entry(name, body.strip()) for name, _, body in found}


@click.command("explain")
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """Explain an error by the NAME that its message ends with; without one, list them all."""
    known = entries()
    if name is None:
        show(EntriesOutput(tuple(known.values())), as_json=as_json)
        return
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
        raise InvalidInput(f"there is no entry {name!r}; did you mean {near}? To see all: lakecommit explain")
    show(EntryOutput(known[name]), as_json=as_json)
