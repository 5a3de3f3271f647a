"""Clustering columns: what a new table has of them, what they cannot be, and what becomes of them later."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lakecommit.errors import InvalidInput, SchemaMismatch
from lakecommit.formats.delta.state import DeltaState
from lakecommit.formats.plan import WritePlan
from tests.lake.stores import FakeStore
from tests.unit.formats.delta.fakes import delta_on, field, protocol, run, schema_of, struct, table_features

from .plans import array, map_of, state_of

NESTED = struct(field("X", "integer"), field("t", struct(field("z", "string"))))
COLUMNS = (field("id"), field("day", "date"), field("s", NESTED), field("tags", array("long")))
BY_ID = {"delta.columnMapping.mode": "id"}


def by(*paths: str, **more: str) -> dict[str, str]:
    """Properties as the option makes them."""
    return {"clusterBy": json.dumps([path.split(".") for path in paths]), **more}


def created(properties: dict[str, str], *fields: dict[str, Any]) -> tuple[FakeStore, DeltaState]:
    store = FakeStore()
    return store, run(delta_on(store).create(schema_of(*(fields or COLUMNS)), (), properties))


def domain_of(store: FakeStore) -> dict[str, Any]:
    (found,) = (each["domainMetadata"] for each in store.commit(0) if "domainMetadata" in each)
    return found


def test_a_new_table_has_its_clustering_columns_as_delta_spark_writes_them() -> None:
    store, state = created(by("DAY", "S.x"))
    assert store.commit(0)[0]["commitInfo"]["operationParameters"]["clusterBy"] == '["day","s.X"]'
    assert store.commit(0)[1] == protocol(
        1, 7, writerFeatures=["appendOnly", "clustering", "domainMetadata", "invariants"]
    )
    assert domain_of(store) == {
        "domain": "delta.clustering",
        "configuration": '{"clusteringColumns":[["day"],["s","X"]],"domainName":"delta.clustering"}',
        "removed": False,
    }
    assert state.clustering_columns == (("day",), ("s", "X"))
    assert state.metadata.configuration == {}
    assert run(delta_on(store).open()) == state


def test_with_column_mapping_the_log_has_physical_names() -> None:
    store, state = created(by("s.t.z", "id", **BY_ID))
    assert store.commit(0)[0]["commitInfo"]["operationParameters"]["clusterBy"] == '["s.t.z","id"]'
    number, _, outer, _ = json.loads(state.metadata.schema_string)["fields"]
    inner = outer["type"]["fields"][1]
    fields = (outer, inner, inner["type"]["fields"][0])
    names = [each["metadata"]["delta.columnMapping.physicalName"] for each in (*fields, number)]
    assert state.clustering_columns == (tuple(names[:3]), (names[3],))
    assert json.loads(domain_of(store)["configuration"])["clusteringColumns"] == [names[:3], names[3:]]
    delta = delta_on(store)
    assert {".".join(names[:3]), names[3]} <= set(delta.plan(None, schema_of(*COLUMNS), None, BY_ID).stats_columns)
    delta.plan(state, schema_of(*COLUMNS), None, by("s.t.z", "ID"))


def test_other_tables_are_not_clustered() -> None:
    store, state = created({})
    assert [next(iter(action)) for action in store.commit(0)] == ["commitInfo", "protocol", "metaData"]
    assert store.commit(0)[0]["commitInfo"]["operationParameters"]["clusterBy"] == "[]"
    assert state.clustering_columns == ()


def test_columns_of_these_types() -> None:
    numbers = ("byte", "short", "integer", "long", "float", "double", "decimal(38,2)")
    for each in (*numbers, "date", "timestamp", "timestamp_ntz", "string"):
        assert created(by("c"), field("c", each))[1].clustering_columns == (("c",),)


@pytest.mark.parametrize("data_type", ["boolean", "binary", "variant", array("long"), map_of("long", "long"), NESTED])
def test_columns_of_these_types_are_refused(data_type: Any) -> None:
    with pytest.raises(InvalidInput, match=r"clustering column c is .*, of which no file has .*: cluster by a number"):
        created(by("c"), field("c", data_type))


@pytest.mark.parametrize("path", ["nope", "s.nope", "id.x", "s.t.z.more"])
def test_columns_that_are_not_there_are_refused(path: str) -> None:
    with pytest.raises(
        InvalidInput, match=rf"clustering column {path} is not among .* id, day, s, .*: check clusterBy"
    ):
        created(by(path))


def test_fields_within_lists_and_maps_are_no_columns() -> None:
    for data_type in (array(struct(field("x"))), map_of("string", struct(field("x")))):
        for path in ("l.x", "l.element.x", "l.value.x"):
            with pytest.raises(InvalidInput, match="is not among"):
                created(by(path), field("l", data_type))


def test_five_columns_are_refused() -> None:
    fields = [field(name) for name in "abcde"]
    assert len(created(by(*"abcd"), *fields)[1].clustering_columns) == 4
    with pytest.raises(InvalidInput, match=r"clusterBy names 5 columns, .* by 4 at most: leave some out"):
        created(by(*"abcde"), *fields)


def test_a_partitioned_table_is_not_clustered() -> None:
    for make in (delta_on(FakeStore()).plan, None):
        with pytest.raises(InvalidInput, match="partitioned by day, too: leave out either partitionBy or clusterBy"):
            if make is None:
                run(delta_on(FakeStore()).create(schema_of(*COLUMNS), ("day",), by("id")))
            else:
                make(None, schema_of(*COLUMNS), ("day",), by("id"))


@pytest.mark.parametrize(
    ("configuration", "remedy"),
    [
        ({}, "which the first 32 columns have: select it before others, or name it in delta.dataSkippingStatsColumns"),
        ({"delta.dataSkippingNumIndexedCols": "3"}, "which the first 3 columns have: select"),
        ({"delta.dataSkippingStatsColumns": "c0"}, ": add it to delta.dataSkippingStatsColumns"),
    ],
)
def test_columns_without_statistics_are_refused(configuration: dict[str, str], remedy: str) -> None:
    """As by delta-spark, which looks at what the table asks for, and not at what files have."""
    fields = [field(f"c{number}") for number in range(40)]
    with pytest.raises(InvalidInput, match=f"clustering column c35 has no statistics.*{remedy}"):
        created(by("c35", **configuration), *fields)
    for enough in ({"delta.dataSkippingNumIndexedCols": "-1"}, {"delta.dataSkippingStatsColumns": "c1, c35"}):
        created(by("c35", **enough), *fields)


def test_a_plan_refuses_what_the_creation_would() -> None:
    """Before any row is written."""
    delta = delta_on(FakeStore())
    for path in ("nope", "tags"):
        with pytest.raises(InvalidInput, match=f"clustering column {path}"):
            delta.plan(None, schema_of(*COLUMNS), None, by(path))
    plan = delta.plan(None, schema_of(*COLUMNS), None, by("id"))
    assert plan == delta.plan(None, schema_of(*COLUMNS), None) and WritePlan.from_json(plan.to_json()) == plan


def clustered(*paths: list[str], fields: tuple[dict[str, Any], ...] = COLUMNS) -> DeltaState:
    domain = {"domain": "delta.clustering", "configuration": json.dumps({"clusteringColumns": paths}), "removed": False}
    needs = table_features("clustering", "domainMetadata")
    return state_of(*fields, needs=needs, more=[{"domainMetadata": domain}])


def test_a_table_that_is_there_takes_its_own_columns_alone() -> None:
    delta, state = delta_on(FakeStore()), clustered(["day"], ["s", "X"])
    schema = schema_of(*COLUMNS)
    assert delta.plan(state, schema, None) == delta.plan(state, schema, None, by("Day", "S.X"))
    for wrong in (("day",), ("s.X", "day"), ("day", "s.X", "id"), ("day", "nope"), ("id",)):
        words = (
            rf"clusterBy is {', '.join(wrong)}, but the table is clustered by day, s\.X: leave it out, or .*CLUSTER BY"
        )
        with pytest.raises(SchemaMismatch, match=words):
            delta.plan(state, schema, None, by(*wrong))
    with pytest.raises(SchemaMismatch, match="clusterBy is id, but the table is clustered by nothing"):
        delta.plan(state_of(*COLUMNS), schema, None, by("id"))


def test_whoever_creates_the_table_second_meets_other_columns() -> None:
    store, state = created(by("id"))
    delta = delta_on(store)
    assert run(delta.create(schema_of(*COLUMNS), (), by("ID"))).table_id == state.table_id
    assert run(delta.create(schema_of(*COLUMNS), (), {})).table_id == state.table_id
    with pytest.raises(SchemaMismatch, match="clusterBy is day, but the table is clustered by id"):
        run(delta.create(schema_of(*COLUMNS), (), by("day")))


def test_whoever_creates_it_at_the_same_time_meets_other_columns() -> None:
    theirs, _ = created(by("id"))

    class Race(FakeStore):
        """Somebody creates the table after one has looked."""

        async def create(self, path: str, body: bytes) -> Any:
            self.objects.update(theirs.objects)
            return await super().create(path, body)

    assert run(delta_on(Race()).create(schema_of(*COLUMNS), (), by("id"))).clustering_columns == (("id",),)
    with pytest.raises(SchemaMismatch, match="clusterBy is day, but the table is clustered by id"):
        run(delta_on(Race()).create(schema_of(*COLUMNS), (), by("day")))


def test_left_over_physical_names_do_not_count() -> None:
    left = field("id", **{"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"})
    state = clustered(["id"], fields=(left,))
    delta_on(FakeStore()).plan(state, schema_of(field("id")), None, by("id"))
    delta_on(FakeStore()).plan(state, schema_of(field("id"), field("b")), None, by("id"), replaces_schema=True)


def test_another_schema_keeps_the_clustering_columns() -> None:
    """Delta's own writer has the table clustered by nothing after any overwrite."""
    delta, state = delta_on(FakeStore()), clustered(["day"], ["s", "X"])
    fewer = (COLUMNS[1], field("s", struct(field("X", "long"))), field("new"))
    plan = delta.plan(state, schema_of(*fewer), None, replaces_schema=True)
    assert delta.planned_schema(state, plan) is not None
    assert set(plan.stats_columns) == {"day", "s.X", "new"}
    for gone in ((COLUMNS[2],), (COLUMNS[2], field("day", "boolean")), (COLUMNS[2], field("day", struct(field("x"))))):
        with pytest.raises(SchemaMismatch, match=r"by day, and the data has no such column, .*: keep the column"):
            delta.plan(state, schema_of(*gone), None, replaces_schema=True)
    with pytest.raises(SchemaMismatch, match=r"by day, s\.X, and cannot be partitioned by id, too: leave partitionBy"):
        delta.plan(state, schema_of(*COLUMNS), ("id",), replaces_schema=True)
    with pytest.raises(SchemaMismatch, match="clusterBy is id, but"):
        delta.plan(state, schema_of(*COLUMNS), None, by("id"), replaces_schema=True)


def test_another_schema_is_refused_if_the_table_was_clustered_meanwhile() -> None:
    delta = delta_on(FakeStore())
    plan = delta.plan(state_of(*COLUMNS), schema_of(COLUMNS[0]), None, replaces_schema=True)
    with pytest.raises(SchemaMismatch, match="clustered by day, and the data has no such column"):
        delta.planned_schema(clustered(["day"]), plan)


def test_a_mapped_column_that_gets_another_type_is_another_column() -> None:
    _, state = created(by("id", **BY_ID), field("id"), field("a"))
    delta = delta_on(FakeStore())
    delta.plan(state, schema_of(field("id")), None, replaces_schema=True)
    with pytest.raises(SchemaMismatch, match="by id, and the data has no such column, or one of another type"):
        delta.plan(state, schema_of(field("id", "string")), None, replaces_schema=True)
