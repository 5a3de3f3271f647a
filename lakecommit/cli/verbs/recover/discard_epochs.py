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
from lakecommit.cli.verbs.recover.queries import Recovery, find_queries, ranges
from lakecommit.clock import Clock
from lakecommit.committing.table import TableCommitter
from lakecommit.epoch_ranges import parse_ranges
from lakecommit.errors import InvalidInput, LakecommitError
from lakecommit.formats.base import marks_of
from lakecommit.model import Epoch, QueryId, Seal, Totals
from lakecommit.progress.settings import TableSettings
from lakecommit.recovering.recovery import commit_passed, give_up, settle, without_a_version
from lakecommit.state.stored import seals_after
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
        rows = [(f"{would}given up", ranges(self.given_up), self.lost.files, self.lost.rows)]
        if self.others:
            rows.append((f"{would}committed", ranges(self.others), self.added.files, self.added.rows))
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
    """Shows or does it: versions that pass over `epochs`, with the marks, and hold what else is pending. Those at or
    before the mark whose version somebody wrote over are held by one without files.

    A driver of the query that is at work meanwhile does no harm: whoever commits an epoch first has decided. So what is
    deleted is only what no version names once the marks are past it. To do it again changes nothing more.
    """
    wanted = parse_ranges(epochs)
    await find_queries(store, query)
    table_format = await table_at(store, clock)
    recovery = Recovery(store, table_format, clock, accepted_table_id)
    table = await recovery.open()
    marks = marks_of(table, query)
    sealed = [each.seal for each in await seals_after(store, query, None)]
    pending = [seal for seal in sealed if marks.own is None or seal.epoch > marks.own]
    _refuse_unknown(query, wanted, sealed)
    replaced = await without_a_version(store, table_format, table, query, wanted)
    lost = [seal for seal in sealed if seal.epoch in replaced or (seal in pending and seal.epoch in wanted)]
    others = [seal for seal in pending if seal.epoch not in wanted and seal.totals.files]
    files = unconfirmed = 0
    problem: str | None = None
    if apply:
        settings = TableSettings(
            partition_columns=None, properties={}, accepted_table_id=accepted_table_id, given_up=wanted
        )
        try:
            await commit_passed(store, table_format, query, new_id, accepted_table_id, wanted)
            committer = TableCommitter(store, table_format, clock=clock, new_id=new_id, random=random.random)
            await committer.commit_pending(query, settings)
            await settle(store, table_format, query, wanted, new_id)
            deleted = await give_up(store, table_format, query, [seal for seal in sealed if seal.epoch in wanted])
            files, unconfirmed = deleted.files, deleted.unconfirmed
        except LakecommitError as error:
            problem = str(error)
    return DiscardEpochsOutput(
        location=store.location,
        query=query,
        given_up=tuple(sorted(wanted)),
        lost=_totals(lost),
        others=tuple(seal.epoch for seal in others),
        added=_totals(others),
        applied=apply,
        files=files,
        unconfirmed=unconfirmed,
        problem=problem,
    )


def _refuse_unknown(query: QueryId, wanted: frozenset[Epoch], sealed: Sequence[Seal]) -> None:
    known = {seal.epoch for seal in sealed}
    if unknown := wanted - known:
        raise InvalidInput(
            f"epochs {ranges(sorted(unknown))} of query {query} have no seal here; those that have: "
            f"{ranges(sorted(known)) or 'none'}; correct --epochs"
        )


def _totals(seals: Sequence[Seal]) -> Totals:
    return sum((seal.totals for seal in seals), Totals())
