"""Deliberate faults in what is made of marks that the table has forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from lakecommit.progress import queries
from lakecommit.progress import table as table_view
from lakecommit.restarting import replay as replaying

from .faults import all_of, fault


@fault
def remembered_mark_taken_for_the_newest() -> Iterator[None]:
    """Who could not read every version since its last look goes on as if it had, though marks in them may have
    expired."""

    def marks_of(table: Any, query: Any) -> Any:
        return replace(real(table, query), expired=False)

    def log(self: Any) -> Any:
        table = self.table.state
        return None if table is None else table.table_id

    real = table_view.marks_of
    with all_of(
        patch.object(table_view, "marks_of", marks_of),
        patch.object(queries.Queries, "_log", property(log)),
    ):
        yield


@fault
def seals_without_a_mark_taken_for_pending() -> Iterator[None]:
    """The log is not asked whether it held their files before the mark expired."""

    async def held_nothing(*args: Any) -> None:
        return None

    with patch.object(replaying, "_check_never_held", held_nothing):
        yield
