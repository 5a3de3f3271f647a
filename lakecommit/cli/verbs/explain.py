"""`lakecommit explain [NAME]`: what is behind an error, and what to do; or what an option does.

The page of errors comes with the package, and options say it themselves.
"""

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
from lakecommit.options.declarations import DECLARATIONS, PROCESS_DECLARATIONS
from lakecommit.options.read_declarations import READ_DECLARATIONS, READING

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


def options() -> dict[str, Entry]:
    """The declared options by name in lower case: Spark shows them like that."""
    reading = [each for each in READ_DECLARATIONS if each.name in READING]
    known = [(each, "") for each in (*DECLARATIONS, *PROCESS_DECLARATIONS)]
    return {
        each.name.lower(): Entry(
            each.name,
            f"{each.help}\n\nfor: {each.applies.value}{reads}\nvalues: {each.values}\n"
            f"default: {each.shown_default or 'none'}",
        )
        for each, reads in (*known, *((each, ", reading") for each in reading))
    }


@click.command("explain")
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """Explain an error by the NAME that its message ends with, or an option; without one, list all errors."""
    known = entries()
    if name is None:
        show(EntriesOutput(tuple(known.values())), as_json=as_json)
        return
    entry = known.get(name) or options().get(name.lower())
    if entry is None:
        near = difflib.get_close_matches(name, [*known, *(each.name for each in options().values())], n=1, cutoff=0.0)
        raise InvalidInput(f"there is no entry {name!r}; did you mean {near[0]}? To see all: lakecommit explain")
    show(EntryOutput(entry), as_json=as_json)
