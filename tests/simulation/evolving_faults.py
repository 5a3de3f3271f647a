"""Deliberate faults in schemas that grow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from lakecommit.committing import evolving, loop, planning
from lakecommit.errors import SchemaMismatch
from lakecommit.formats.delta import table
from lakecommit.formats.delta.schema import evolution as merging
from lakecommit.formats.delta.write import evolving as written
from lakecommit.schema import Struct

from .faults import all_of, fault
from .schema_model import SchemaModel


@contextmanager
def _planned_ahead() -> Iterator[None]:
    """Writes are planned for the schema that the table is to have, and nobody gives it that."""

    async def evolve(*args: Any) -> None:
        return None

    def plan(self: Any, state: Any, schema: str, *args: Any, **more: Any) -> Any:
        try:
            return real(self, state, schema, *args, **more)
        except SchemaMismatch:
            ahead = self.evolution(state, schema)
            if ahead is None:
                raise
            return real(self, replace(state, metadata=ahead.metadata), schema, *args, **more)

    real = table.DeltaFormat.plan
    with all_of(patch.object(planning, "evolve", evolve), patch.object(table.DeltaFormat, "plan", plan)):
        yield


@fault
def files_written_before_their_schema_is_in_the_table() -> Iterator[None]:
    with all_of(_planned_ahead(), patch.object(table, "breaking_changes", lambda *args, **more: [])):
        yield


@fault
def append_brings_its_schema() -> Iterator[None]:
    """One version has the files and the columns that they need."""

    def check(self: Any, state: Any, plan: Any, *args: Any) -> None:
        self.ahead = None if plan.schema == state.metadata.schema_string else plan.schema

    async def commit(self: Any, state: Any, change: Any) -> Any:
        ahead = getattr(self, "ahead", None)
        if change.adds and ahead is not None:
            change = replace(change, evolves=self.evolution(state, ahead))
        return await real(self, state, change)

    def nothing(*args: Any) -> None:
        return None

    real = table.DeltaFormat.commit
    with all_of(
        _planned_ahead(),
        patch.object(SchemaModel, "file_planned", nothing),
        patch.object(table.DeltaFormat, "check", check),
        patch.object(table.DeltaFormat, "commit", commit),
    ):
        yield


@fault
def schema_not_merged_again_after_a_conflict() -> Iterator[None]:
    """What the table was when the write asked for more columns is what it is made again."""

    async def evolve(queries: Any, reader: Any, table_format: Any, schema: str, new_id: Any) -> Any:
        class Once:
            location = table_format.location

            def __init__(self) -> None:
                self.first: Any = None

            def evolution(self, state: Any, schema: str) -> Any:
                self.first = self.first or table_format.evolution(state, schema)
                return self.first

        return await real(queries, reader, Once(), schema, new_id)  # type: ignore[arg-type]

    real = evolving.evolve
    with patch.object(planning, "evolve", evolve):
        yield


@fault
def columns_that_the_data_has_not_dropped() -> Iterator[None]:
    def structs(self: Any, of_table: Any, data: Any, prefix: str) -> Any:
        given = {field.name.lower() for field in data.fields}
        found = real(self, of_table, data, prefix)
        return Struct(tuple(field for field in found.fields if field.name.lower() in given))

    real = merging._Merge.structs
    with patch.object(merging._Merge, "structs", structs):
        yield


@fault
def another_type_of_a_column_taken() -> Iterator[None]:
    def of_type(self: Any, of_table: Any, data: Any, *args: Any) -> Any:
        found = real(self, of_table, data, *args)
        taken = bool(self.problems)
        self.problems.clear()
        return data if taken else found

    real = merging._Merge._type
    with patch.object(merging._Merge, "_type", of_type):
        yield


@fault
def ids_of_columns_given_twice() -> Iterator[None]:
    """The highest id of a column is forgotten, so that a new one begins anew."""

    def assign_missing(schema: Any, highest: int, new_id: Any) -> Any:
        return real(schema, 0, new_id)

    real = written.assign_missing
    with patch.object(written, "assign_missing", assign_missing):
        yield


@fault
def files_of_a_narrower_schema_refused() -> Iterator[None]:
    """What was planned before the table grew is taken for what does not fit it any more."""

    def breaking_changes(plan: Any, now: Any, **more: Any) -> list[str]:
        return [] if plan == now else ["it has other columns"]

    with patch.object(table, "breaking_changes", breaking_changes):
        yield


@fault
def files_with_the_ids_of_other_columns_taken() -> Iterator[None]:
    """A write was planned before there was a table, which somebody creates with its columns in another order."""

    def breaking_changes(plan: Any, now: Any, **more: Any) -> list[str]:
        return real(plan, now, **{**more, "by_id": False})

    real = table.breaking_changes
    with patch.object(table, "breaking_changes", breaking_changes):
        yield


@fault
def epochs_of_others_refused_by_an_old_schema() -> Iterator[None]:
    """Another driver has had the table grow, and its epoch is held against the table as it was."""

    async def fitting_parts(self: Any, *, looked: bool = False) -> Any:
        return await real(self, looked=True)

    real = loop.Snapshots._fitting_parts
    with patch.object(loop.Snapshots, "_fitting_parts", fitting_parts):
        yield


@fault
def schema_not_merged_with_a_table_that_was_just_created() -> Iterator[None]:
    """Where there is no table, nothing is merged, and who creates one meanwhile has the write refused."""

    async def plan_anew(self: Any, schema: str, settings: Any, *args: Any, **more: Any) -> Any:
        if (before := refused.pop(self, None)) is not None:
            raise before
        try:
            return await real(self, schema, settings, *args, **more)
        except SchemaMismatch as error:
            if settings.merge_schema:
                refused[self] = error
            raise

    refused: dict[Any, SchemaMismatch] = {}
    real = planning.Planner._plan_anew
    with patch.object(planning.Planner, "_plan_anew", plan_anew):
        yield
