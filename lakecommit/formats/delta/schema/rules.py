"""Constraints, invariants, generated columns and defaults: what a Delta table asks of every row.

Their expressions are evaluated while files are written. A table with one that is not evaluated exactly is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from lakecommit.expressions.binding import bind
from lakecommit.expressions.bound import Session
from lakecommit.expressions.constants import literal_value
from lakecommit.expressions.errors import Unsupported
from lakecommit.expressions.parser import parse as parse_expression
from lakecommit.expressions.syntax import references
from lakecommit.expressions.tokens import quoted
from lakecommit.expressions.types import BOOLEAN
from lakecommit.formats.delta.schema.lengths import char_columns
from lakecommit.formats.delta.state import Metadata
from lakecommit.formats.plan import Check, Computed, WritePlan
from lakecommit.formats.schema.fields import all_fields
from lakecommit.schema import DataType, Field, Primitive, Struct, describe

CURRENT_DEFAULT = "CURRENT_DEFAULT"
_CONSTRAINT = "delta.constraints."
_INVARIANT = "delta.invariants"
_GENERATED = "delta.generationExpression"
# Tasks have the settings of the session that writes: what is accepted has to be evaluated with either.
_SESSIONS = (Session(ansi=True, zone="UTC"), Session(ansi=False, zone="UTC"))


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for every row of a table: checks, and columns that are computed from others."""

    checks: tuple[Check, ...]
    generated: tuple[Computed, ...]


def rules_of(metadata: Metadata, schema: Struct) -> Rules:
    named = sorted((key, text) for key, text in metadata.configuration.items() if key.lower().startswith(_CONSTRAINT))
    checks = [Check(key[len(_CONSTRAINT) :], text) for key, text in named]
    for path, field in all_fields(schema):
        if (invariant := field.metadata.get(_INVARIANT)) is not None:
            checks.append(Check(f"invariant of {path}", _invariant(str(invariant))))
    generated = (
        Computed(path, str(field.metadata[_GENERATED])) for path, field in all_fields(schema) if is_generated(field)
    )
    return Rules(tuple(checks), tuple(generated))


def is_generated(field: Field) -> bool:
    return field.metadata.get(_GENERATED) is not None


def rule_problems(metadata: Metadata, schema: Struct) -> Iterator[str]:
    """Why a table's rules cannot be honoured, by constraint and by column."""
    rules = rules_of(metadata, schema)
    for check in rules.checks:
        if (why := _not_evaluated(check.expression, schema, BOOLEAN)) is not None:
            feature = "invariants" if check.name.startswith("invariant of ") else "checkConstraints"
            yield _refusal(feature, check.name, check.expression, why, "drop it")
    types = {path: field.type for path, field in all_fields(schema)}
    columns = {field.name for field in schema.fields}
    for each in rules.generated:
        why = _not_evaluated(each.expression, schema, types[each.column])
        if why is None and each.column not in columns:
            why = "it is a field of a struct"
        if why is not None:
            yield _refusal("generatedColumns", f"column {each.column}", each.expression, why, "change the column")


def default_problem(field: Field) -> str | None:
    """Why a column's default cannot be filled in; None if it can, or there is none."""
    text = field.metadata.get(CURRENT_DEFAULT)
    if text is None:
        return None
    if not isinstance(field.type, Primitive):
        return f"a default of the type {describe(field.type)}"
    try:
        literal_value(str(text), field.type, _SESSIONS[0])
    except Unsupported as unsupported:
        return str(unsupported)
    return None


def with_rules(plan: WritePlan, rules: Rules, data: Struct, table: Struct) -> WritePlan:
    """The plan for rows of `data`: what is generated is computed if the data does not have it, and else checked."""
    given = {field.name for field in data.fields}
    return replace(
        plan,
        checks=(*rules.checks, *(_given(each) for each in rules.generated if each.column in given)),
        computed=tuple(each for each in rules.generated if each.column not in given),
        defaults=tuple(
            Computed(field.name, str(field.metadata[CURRENT_DEFAULT]))
            for field in table.fields
            if field.name not in given and field.metadata.get(CURRENT_DEFAULT) is not None and not is_generated(field)
        ),
    )


def added_checks(plan: WritePlan, rules: Rules) -> tuple[Check, ...]:
    return tuple(check for check in rules.checks if check not in plan.checks)


def unheeded(plan: WritePlan, rules: Rules) -> list[str]:
    """The rules of a table that files by `plan` were written without."""
    problems = [
        f"the constraint {check.name} ({check.expression}) was added, and their rows were not checked by it"
        for check in added_checks(plan, rules)
    ]
    problems += [
        f"the generated column {each.column} ({each.expression}) was not computed so"
        for each in rules.generated
        if each not in plan.computed and _given(each) not in plan.checks
    ]
    return problems


def _given(generated: Computed) -> Check:
    return Check("Generated Column", f"{quoted(generated.column)} <=> ({generated.expression})")


def _invariant(text: str) -> str:
    """The expression in the JSON that an invariant is kept as; what is no such JSON is no expression either."""
    try:
        return str(json.loads(text)["expression"]["expression"])
    except (ValueError, KeyError, TypeError):
        return text


def _not_evaluated(text: str, schema: Struct, to: DataType) -> str | None:
    padded = char_columns(schema)
    try:
        expression = parse_expression(text)
        if any(reference.parts[0].lower() in padded for reference in references(expression)):
            return "it has a column of the type char, which Spark pads"
        for session in _SESSIONS:
            found = bind(expression, schema, session).type
            if found != to:
                return f"it is {describe(found)}, and not {describe(to)}"
    except Unsupported as unsupported:
        return f"it has {unsupported}"
    return None


def _refusal(feature: str, name: str, expression: str, why: str, remedy: str) -> str:
    return (
        f"the table has {feature} ({name}: {expression}), which is not evaluated here exactly as Spark would: {why}; "
        f"{remedy}, or use delta-spark (docs/expressions.md lists what is evaluated)"
    )
