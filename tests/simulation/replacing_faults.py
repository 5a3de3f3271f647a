"""Deliberate faults in writes that replace the table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from lakecommit.formats.delta import table
from lakecommit.formats.delta.write import selection
from lakecommit.formats.delta.write.selection import DeltaSelection

from .faults import fault, rare_fault


@fault
def selected_as_the_table_is_now() -> Iterator[None]:
    """What somebody has added since the write was planned is dropped, and nobody has seen it."""

    async def select(self: Any, state: Any, version: int, scope: Any, adds: Any) -> Any:
        return await real(self, state, state.version, scope, adds)

    real = table.DeltaFormat.select
    with patch.object(table.DeltaFormat, "select", select):
        yield


@fault
def versions_between_not_looked_at() -> Iterator[None]:
    """Files are replaced that were there once, and those that came since are left."""

    async def find_conflict(store: Any, state: Any, selection: DeltaSelection, **more: Any) -> None:
        return None

    with patch.object(table, "find_conflict", find_conflict):
        yield


@fault
def version_before_the_plan_taken_for_the_plans() -> Iterator[None]:
    """What is in the version that the write was planned with is not replaced."""

    async def select(self: Any, state: Any, version: int, scope: Any, adds: Any) -> Any:
        selection = await real(self, state, max(0, version - 1), scope, adds)
        selection.checked = version
        return selection

    real = table.DeltaFormat.select
    with patch.object(table.DeltaFormat, "select", select):
        yield


@rare_fault
def log_that_is_cleaned_up_meanwhile_not_read_again() -> Iterator[None]:
    """A write is refused for a damaged log, which is none."""
    with patch.object(selection, "TRIES", 1):
        yield
