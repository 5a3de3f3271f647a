"""What a task must know to write files that fit a table. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from lakecommit.errors import InvalidInput

# The owner of a table that is for batch writes.
BATCH = "batch"


@dataclass(frozen=True, slots=True)
class Check:
    """What has to be true of every row: `expression` is Spark SQL over the table's columns. Null is not true."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class Computed:
    """A column that the data does not have, and what its values are: Spark SQL over the table's columns."""

    column: str
    expression: str


@dataclass(frozen=True, slots=True)
class TableOption:
    """What a table asks of everybody who writes to it, as the option of a write that it stands for.

    `property` is the name that people give it in the table.
    """

    name: str
    value: str
    property: str


@dataclass(frozen=True, slots=True)
class MaxLength:
    """How many characters a string may have. `path` are physical names from a column down; `element`, `key` and
    `value` stand for these parts of arrays and maps. `type` is what people call it."""

    path: tuple[str, ...]
    characters: int
    type: str


def check_owner(plan: WritePlan, owner: str, location: str) -> None:
    """Raises `InvalidInput` if the table is another writer's: said before anything is written."""
    if plan.owner not in (None, owner):
        raise owned_by_another(location, str(plan.owner), owner)


def owned_by_another(location: str, owner: str, who: str) -> InvalidInput:
    named = {each: "batch writes" if each == BATCH else f"query {each}" for each in (owner, who)}
    return InvalidInput(
        f"{location} belongs to {named[owner]}, and {named[who]} cannot write there: the log of such a directory "
        "counts the epochs of one query alone. Write to another directory, use the checkpointLocation that the "
        "directory was begun with, or write a Delta table, which takes any number of queries",
        entry="another-owner",
    )


@dataclass(frozen=True, slots=True)
class WritePlan:
    """What a task must know to write files that fit the table.

    `schema` is the table's schema in Delta's JSON form, column mapping metadata included. `partition_columns` are
    logical names, in order. `stats_columns` are physical paths ("a", "s.x") of the leaves to collect bounds for.
    `table_id` is None when the table does not exist yet. `checks` are asked of every row, `computed` columns and those
    with `defaults`, which are literals, are filled in.

    `options` are those that the table sets. With a `random_prefix` files are not in directories of their partition
    values, but in ones whose names are that many characters of no meaning. No string is longer than `lengths` say.
    `owner` is the only query that may write there; None where any may, or none has begun.
    """

    schema: str
    partition_columns: tuple[str, ...]
    stats_columns: tuple[str, ...]
    table_id: str | None
    checks: tuple[Check, ...] = ()
    computed: tuple[Computed, ...] = ()
    defaults: tuple[Computed, ...] = ()
    options: tuple[TableOption, ...] = ()
    random_prefix: int = 0
    lengths: tuple[MaxLength, ...] = ()
    owner: str | None = None

    @property
    def has_expressions(self) -> bool:
        return bool(self.checks or self.computed or self.defaults)

    def to_json(self) -> str:
        """Every manifest has it, so that what most tables do not have is left out."""
        fields = asdict(self)
        for name in ("checks", "computed", "defaults", "options", "random_prefix", "lengths", "owner"):
            if not fields[name]:
                del fields[name]
        return json.dumps(fields, separators=(",", ":"), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> WritePlan:
        fields = json.loads(text)
        return WritePlan(
            schema=fields["schema"],
            partition_columns=tuple(fields["partition_columns"]),
            stats_columns=tuple(fields["stats_columns"]),
            table_id=fields["table_id"],
            checks=tuple(Check(**each) for each in fields.get("checks", ())),
            computed=tuple(Computed(**each) for each in fields.get("computed", ())),
            defaults=tuple(Computed(**each) for each in fields.get("defaults", ())),
            options=tuple(TableOption(**each) for each in fields.get("options", ())),
            random_prefix=fields.get("random_prefix", 0),
            lengths=tuple(
                MaxLength(tuple(each["path"]), each["characters"], each["type"]) for each in fields.get("lengths", ())
            ),
            owner=fields.get("owner"),
        )
