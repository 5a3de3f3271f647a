"""`lakecommit recover --discard`: gives up what a query has staged, for one that is gone for good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType

from lakecommit.cli.hints import again, hint
from lakecommit.cli.output import duration, second, size, table, text
from lakecommit.cli.tables import new_id, table_at
from lakecommit.clock import Clock
from lakecommit.epoch_ranges import listed
from lakecommit.errors import InvalidInput
from lakecommit.model import RELEASE_AGE_MS, Epoch, QueryId
from lakecommit.recovering.asked import find_queries
from lakecommit.recovering.discard import discard, survey_discard
from lakecommit.releasing.query import Cleaned
from lakecommit.storage.base import Store


@dataclass(frozen=True, slots=True)
class DiscardOutput:
    """What a query has staged. `files` are those that the table does not name. `cleaned` says what is deleted."""

    location: str
    query: QueryId
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
            "query": self.query,
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
            ("epochs given up", listed(self.epochs) or None, ""),
            (f"files {what}", self.files, size(self.size_bytes)),
            (f"manifests {what}", self.manifests, ""),
            (f"seals {what}", self.seals, "the newest stays, as evidence"),
        ]
        parts: list[RenderableType] = [text(self.location, "bold"), text(f"query {self.query}"), text("")]
        parts.append(table(("", "#", ""), rows))
        parts += [text(problem, "red") for problem in self.problems]
        if self.cleaned is None:
            export = ("recover", self.location, "--query", self.query, "--export", "DIR")
            parts += [
                text(""),
                text("nothing was changed"),
                hint("to save the files first, if anybody wants them", *export),
            ]
            parts.append(again("to give them up", self.location, "--apply"))
        elif self.cleaned.unconfirmed:
            parts.append(text(f"{self.cleaned.unconfirmed} deletions are not confirmed; run the same again", "red"))
        return Group(*parts)


async def discard_query(store: Store, clock: Clock, query: QueryId, *, apply: bool) -> DiscardOutput:
    """Shows what giving up a query would delete, or does it. Raises if the query wrote too recently for that."""
    await find_queries(store, query)
    table_format = await table_at(store, clock)
    found = await survey_discard(store, table_format, query, clock.wall_ms())
    if found.young_ms is not None:
        raise InvalidInput(
            f"query {query} has written {duration(clock.wall_ms() - found.young_ms)} ago and may still be running; "
            f"nothing was changed; stop it and try again after {second(found.young_ms + RELEASE_AGE_MS)}"
        )
    problems = tuple(f"{problem}; it is kept" for problem in found.lost.damaged.values())
    cleaned = await discard(store, table_format, query, clock=clock, new_id=new_id) if apply else None
    return DiscardOutput(
        location=store.location,
        query=query,
        epochs=found.epochs,
        files=len(found.lost.paths) if cleaned is None else cleaned.files,
        size_bytes=found.lost.size_bytes,
        manifests=found.manifests if cleaned is None else cleaned.manifests,
        seals=found.seals if cleaned is None else cleaned.seals,
        problems=problems,
        cleaned=cleaned,
    )
