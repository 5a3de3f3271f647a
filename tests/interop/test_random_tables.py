"""Random tables without Spark, so that there are many: deltalake reads what was written, and statistics are true.

And whether random tables have everything that they should have.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from hypothesis import Phase

from lakecommit.schema import Array, DataType, Map, Primitive, Struct, describe, to_json
from lakecommit.writing.settings import WriterSettings
from tests.interop.appending import append_encoded, create_empty, write_encoded
from tests.interop.examples import ROUND, examples, run
from tests.interop.random_schemas import NAMES
from tests.interop.random_tables import RandomTable, differences, read_by_deltalake, tables, untrue
from tests.interop.random_values import FAR_MOMENTS, FIRST_DAY, FIRST_MOMENT, KINDS, LAST, LAST_DAY, LAST_MOMENT

MOMENTS = [0, -1, FIRST_MOMENT, LAST_MOMENT]
FLOATS = ["nan", "inf", "-inf", "0.0", "-0.0"]
VALUES = {
    "boolean": ["True", "False"],
    "byte": [0, -1, -128, 127],
    "short": [0, -1, -(2**15), 2**15 - 1],
    "integer": [0, -1, -(2**31), 2**31 - 1],
    "long": [0, -1, -(2**63), 2**63 - 1],
    "float": [*FLOATS, "3.4028234663852886e+38", "1.401298464324817e-45"],
    "double": [*FLOATS, "1.7976931348623157e+308", "5e-324"],
    "decimal(9,2)": ["9999999.99", "-9999999.99", "0.00"],
    "decimal(18,0)": ["9" * 18, "-" + "9" * 18, "0"],
    "decimal(20,20)": ["0." + "9" * 20, "-0." + "9" * 20, "0." + "0" * 20],
    "decimal(38,18)": ["9" * 20 + "." + "9" * 18, "-" + "9" * 20 + "." + "9" * 18, "0." + "0" * 18],
    "string": ["", "a" * 31, "a" * 32, "a" * 33, "x" * 5000, LAST * 40],
    "binary": [b"", b"\xff" * 40],
    "date": [0, -1, FIRST_DAY, LAST_DAY],
    "timestamp": [*MOMENTS, *FAR_MOMENTS],
    "timestamp_ntz": MOMENTS,
}
# As SQL has them, so that "int" is every whole number, and "timestamp" both moments.
PARTITIONED = ["int", "boolean", "date", "timestamp", "decimal", "string"]
AROUND = ["table", "struct", "array", "map"]
# One letter for each row.
NULLS = ["xxxxxx", "......", ".x.x"]
FILTERS = [" in (", " not in (", ", null)", "between ", " is null", " is not null", " <=> null", "coalesce(", "not ("]
FILTERS += ["isnan(", "('nan')", "with(`"]
WANTED = {
    *(f"{kind}: {value}" for kind, values in VALUES.items() for value in values),
    *(f"{inner} in {outer}" for inner in [*KINDS, "struct", "array", "map", "null"] for outer in AROUND),
    *(f"{form} of {length}" for form in ["array", "map"] for length in range(4)),
    *(f"may be null in {form}: {may}" for form in AROUND for may in [True, False]),
    *FILTERS,
    *NAMES,
    *(f"partitioned by {kind}" for kind in PARTITIONED),
    *("partitioned by two", "three deep", "one name for two leaves", *(f"nulls: {pattern}" for pattern in NULLS)),
}


@examples(seeds=range(3), rounds=20, shrink=True, drawn=tables())
def test_deltalake_gets_what_was_written(tmp_path_factory: Any, drawn: RandomTable) -> None:
    folder, limits = tmp_path_factory.mktemp("tables"), WriterSettings(**drawn.limits)
    ours, theirs = folder / "ours", folder / "theirs"
    write_encoded(ours, to_json(drawn.schema), drawn.rows.arrow, limits, partition_by=drawn.partition_by)
    assert untrue(ours, drawn, drawn.rows) == []
    assert differences(read_by_deltalake(ours, drawn.schema), drawn.schema, drawn.rows.rows) == []

    # Made by others: lakecommit makes tables in which everything may be null, and deltalake none with every type.
    create_empty(theirs, to_json(drawn.required), drawn.partition_by)
    append_encoded(theirs, to_json(drawn.schema), drawn.more.arrow, limits)
    assert untrue(theirs, drawn, drawn.more) == []
    assert differences(read_by_deltalake(theirs, drawn.required), drawn.schema, drawn.more.rows) == []


def test_random_tables_have_every_type_nesting_name_value_and_filter() -> None:
    seen: set[str] = set()

    def look(drawn: RandomTable) -> None:
        seen.update(_features(drawn))

    # The first six have all of it.
    for number in range(20):
        run(look, number, ROUND, [Phase.generate], {"drawn": tables()})
        if seen >= WANTED:
            break
    assert sorted(WANTED - seen) == []


def _features(drawn: RandomTable) -> Iterator[str]:
    yield from _of_type(drawn.required, "table", 0)
    for row in drawn.rows.rows:
        yield from _of_value(row, drawn.required, "table")
    yield from (form for form in FILTERS if any(form in condition for condition in drawn.asked))
    for field in drawn.required.fields:
        if field.name in drawn.partition_by:
            yield from (f"partitioned by {kind}" for kind in PARTITIONED if kind in describe(field.type))
    if len(drawn.partition_by) > 1:
        yield "partitioned by two"
    if len({".".join(path) for path in drawn.rows.known}) < len(drawn.rows.known):
        yield "one name for two leaves"
    for field in drawn.required.fields:
        there = "".join(".x"[row[field.name] is None] for row in drawn.rows.rows)
        yield from (f"nulls: {pattern}" for pattern in NULLS if pattern in there)


def _of_type(data_type: DataType, around: str, depth: int) -> Iterator[str]:
    match data_type:
        case Primitive(name):
            yield f"{name} in {around}"
        case Struct(fields):
            here = "struct" if depth else "table"
            yield f"struct in {around}"
            for field in fields:
                yield field.name
                yield f"may be null in {here}: {field.nullable}"
                yield from _of_type(field.type, here, depth + 1)
        case Array(element, may_be_null):
            yield from (f"array in {around}", f"may be null in array: {may_be_null}")
            yield from _of_type(element, "array", depth + 1)
        case Map(key, value, may_be_null):
            yield from (f"map in {around}", f"may be null in map: {may_be_null}")
            yield from _of_type(key, "map", depth + 1)
            yield from _of_type(value, "map", depth + 1)
    if depth == 4:
        yield "three deep"


def _of_value(value: Any, data_type: DataType, around: str) -> Iterator[str]:
    if value is None:
        yield f"null in {around}"
        return
    match data_type:
        case Primitive(name):
            yield f"{name}: {format(value, 'f') if isinstance(value, Decimal) else value}"
        case Struct(fields):
            for field in fields:
                yield from _of_value(value[field.name], field.type, "table" if value.get("row") else "struct")
        case Array(element):
            yield f"array of {len(value)}"
            for each in value:
                yield from _of_value(each, element, "array")
        case Map(key, mapped):
            yield f"map of {len(value)}"
            for one, other in value:
                yield from _of_value(one, key, "map")
                yield from _of_value(other, mapped, "map")
