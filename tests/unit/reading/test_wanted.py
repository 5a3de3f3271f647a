"""Which columns a reader gets, and how they are shown."""

from __future__ import annotations

import pytest

from lakecommit.errors import InvalidInput, SchemaMismatch
from lakecommit.reading.types import readable
from lakecommit.reading.wanted import given_schema, shown, wanted_schema
from lakecommit.schema import parse, to_json

from .files import array, mapping, schema_of, struct

MAPPED = {"delta.columnMapping.id": 3, "delta.columnMapping.physicalName": "col-3"}
TABLE = schema_of(
    id="long",
    Name={"type": "string", "metadata": {**MAPPED, "comment": "who", "CURRENT_DEFAULT": "'x'"}},
    l=array(struct(a="long", b="string")),
    m=mapping("string", struct(c="date")),
)


def names(schema):
    return [field.name for field in schema.fields]


def test_columns_that_are_named_come_in_that_order():
    assert names(wanted_schema(TABLE, None)) == ["id", "Name", "l", "m"]
    assert names(wanted_schema(TABLE, ["NAME", "id"])) == ["Name", "id"]
    with pytest.raises(InvalidInput, match="names zz, which the table does not have; it has id, Name, l, m"):
        wanted_schema(TABLE, ["zz"])


def test_what_is_shown_has_comments_and_nothing_of_files():
    required = '{"type":"struct","fields":[{"name":"x","type":"long","nullable":false,"metadata":{}}]}'
    assert shown(wanted_schema(required, None))["fields"][0]["nullable"] is True
    metadata = [field["metadata"] for field in shown(wanted_schema(TABLE, None))["fields"]]
    assert metadata == [{}, {"comment": "who"}, {}, {}]


def test_a_schema_that_was_given_finds_the_tables_columns():
    given = parse(schema_of(NAME="string", l=array(struct(b="string")), m=mapping("string", struct(c="date"))))
    found = given_schema(TABLE, given)
    assert names(found) == ["NAME", "l", "m"]
    assert (found.fields[0].physical_name, found.fields[0].field_id) == ("col-3", 3)
    assert names(found.fields[1].type.element) == ["b"]
    assert to_json(readable(given_schema(TABLE, readable(parse(TABLE)))))


def test_a_schema_that_does_not_fit_is_refused_by_column():
    given = parse(schema_of(id="string", zz="long", l=array(struct(c="long")), m=array("long")))
    with pytest.raises(SchemaMismatch) as caught:
        given_schema(TABLE, given)
    for said in ("id is string there and bigint in the table", "zz is not in the table", "l.element.c is not in"):
        assert said in str(caught.value)
    assert "m is array<bigint> there and map<string,struct<c:date>>" in str(caught.value)
    with pytest.raises(SchemaMismatch, match="it has no columns"):
        given_schema(TABLE, parse(schema_of()))
