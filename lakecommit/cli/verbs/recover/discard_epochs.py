"""`lakecommit recover --discard --epochs`: gives up epochs that cannot be committed, so that their query goes on."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType

from lakecommit.cli.hints import again, hint
from lakecommit.cli.output import table, text
from lakecommit.cli.tables import new_id, table_at
from lakecommit.clock import Clock
from lakecommit.epoch_ranges import listed, parse_ranges
from lakecommit.errors import LakecommitError
from lakecommit.model import Epoch, QueryId, Seal, Totals
from lakecommit.recovering.asked import find_queries, open_table
from lakecommit.recovering.giving_up import give_up_epochs, survey_epochs
from lakecommit.storage.base import Store


@dataclass(frozen=True, slots=True)
class DiscardEpochsOutput:
    """`given_up` are left out of the table for good, `others` are committed. `files` are what was left of the former
    and is deleted, `unconfirmed` what may still be there."""

    location: str
    query: QueryId
    given_up: tuple[Epoch, ...]
    lost: Totals
    others: tuple[Epoch, ...]
    added: Totals
    applied: bool
    files: int = 0
    unconfirmed: int = 0
    problem: str | None = None

    @property
    def well(self) -> bool:
        return self.problem is None and self.unconfirmed == 0

    def data(self) -> dict[str, Any]:
        return {
            "location": self.location,
            "query": self.query,
            "applied": self.applied,
            "givenUp": {"epochs": list(self.given_up), "files": self.lost.files, "rows": self.lost.rows},
            "committed": {"epochs": list(self.others), "files": self.added.files, "rows": self.added.rows},
            "filesDeleted": self.files,
            "unconfirmed": self.unconfirmed,
            "problem": self.problem,
        }

    def render(self) -> RenderableType:
        would = "" if self.applied else "would be "
        rows = [(f"{would}given up", listed(self.given_up), self.lost.files, self.lost.rows)]
        if self.others:
            rows.append((f"{would}committed", listed(self.others), self.added.files, self.added.rows))
        parts: list[RenderableType] = [text(self.location, "bold"), text(f"query {self.query}"), text("")]
        parts.append(table(("", "epochs", "#files", "#rows"), rows))
        if self.problem is not None:
            parts.append(text(self.problem, "red"))
        elif self.unconfirmed:
            parts.append(text(f"{self.unconfirmed} deletions are not confirmed; run the same again", "red"))
        elif not self.applied:
            export = ("recover", self.location, "--query", self.query, "--export", "DIR")
            parts += [text(""), text("nothing was changed"), hint("to save what is left of the files first", *export)]
            parts.append(again("to do this", self.location, "--apply"))
        else:
            parts += [text(""), text(f"{self.files} files that were left of them are deleted; start the query again")]
        return Group(*parts)


async def discard_epochs(
    store: Store, clock: Clock, query: QueryId, epochs: str, *, accepted_table_id: str | None, apply: bool
) -> DiscardEpochsOutput:
    """Shows or does it. What goes wrong on the way is a problem of the output."""
    wanted = parse_ranges(epochs)
    await find_queries(store, query)
    table_format = await table_at(store, clock)
    table = await open_table(table_format, accepted_table_id)
    found = await survey_epochs(store, table_format, table, query, wanted)
    files = unconfirmed = 0
    problem: str | None = None
    if apply:
        try:
            deleted = await give_up_epochs(
                store,
                table_format,
                found,
                clock=clock,
                new_id=new_id,
                random=random.random,
                accepted_table_id=accepted_table_id,
            )
            files, unconfirmed = deleted.files, deleted.unconfirmed
        except LakecommitError as error:
            problem = str(error)
    return DiscardEpochsOutput(
        location=store.location,
        query=query,
        given_up=tuple(sorted(wanted)),
        lost=_totals(found.lost),
        others=tuple(seal.epoch for seal in found.others),
        added=_totals(found.others),
        applied=apply,
        files=files,
        unconfirmed=unconfirmed,
        problem=problem,
    )


def _totals(seals: Sequence[Seal]) -> Totals:
    return sum((seal.totals for seal in seals), Totals())
