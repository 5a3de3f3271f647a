"""What a Delta table asks of schemas beyond what every format does. Pure; every problem names its column and remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from lakecommit.formats.delta.schema.lengths import kept_note
from lakecommit.formats.delta.schema.rules import CURRENT_DEFAULT, default_problem, is_generated
from lakecommit.formats.schema.fit import schema_problems, structs, user_schema
from lakecommit.schema import DataType, Field, Struct, describe, required_in

ILLEGAL_CHARACTERS = " ,;{}()\n\t="

# Marks that Spark and Delta leave on columns of a query: watermarks, defaults and ids of the tables it reads.
_INTERNAL_METADATA = ("__", CURRENT_DEFAULT, "EXISTS_DEFAULT", "delta.", "spark.")


def new_table_problems(data: Struct, partition_columns: Iterable[str], *, any_name: bool) -> list[str]:
    """What keeps `data` from being the schema of a new table. With column mapping (`any_name`) all names are legal."""
    names = [] if any_name else list(_illegal_names(data, ""))
    return [*schema_problems(data, partition_columns), *names]


def table_schema(data: Struct) -> Struct:
    """The schema of a new table for rows of `data`.

    All fields are nullable, as Delta makes them for a DataFrame: its nullability says what one query can prove, not
    what the table should demand. Of the metadata only the user's own stays, such as comments, and how long strings may
    be.
    """
    found = user_schema(data, lambda key: not key.startswith(_INTERNAL_METADATA))
    notes = (kept_note(field) for field in data.fields)
    fields = zip(found.fields, notes, strict=True)
    return Struct(tuple(replace(field, metadata={**field.metadata, **note}) for field, note in fields))


def missing(field: Field, path: str) -> Iterator[str]:
    """Why a column of the table has to be in the data; nothing where it is computed, has a default or is null."""
    default = field.metadata.get(CURRENT_DEFAULT)
    if is_generated(field):
        return
    if default is None:
        # Below a struct that is null nothing has a value either.
        for inner, each in required_in(field.type, path) if field.nullable else [(path, field)]:
            yield f"column {inner} ({describe(each.type)} not null) is missing: add it to the data"
    elif (why := default_problem(field)) is not None:
        yield (
            f"column {path} is missing, and its default value ({default}) is not filled in here, because of {why}: add "
            f"the column to the data, or ALTER TABLE … ALTER COLUMN {path} DROP DEFAULT, so that it is null"
        )


def _illegal_names(data_type: DataType, prefix: str) -> Iterator[str]:
    for path, struct in structs(data_type, prefix):
        for field in struct.fields:
            if not field.name or any(character in ILLEGAL_CHARACTERS for character in field.name):
                yield (
                    f"the name {path + field.name!r} is empty or has one of the characters {ILLEGAL_CHARACTERS!r}: "
                    "rename it, or create the table with delta.columnMapping.mode=name"
                )
