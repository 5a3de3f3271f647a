"""Tables as a plan sees them: their schemas, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakecommit.formats.delta.state import DeltaState
from tests.lake.stores import FakeStore
from tests.unit.formats.delta.fakes import delta_on, field, metadata, protocol, run, schema_of, struct


def state_of(
    *fields: dict[str, Any],
    partitions: Sequence[str] = (),
    configuration: Mapping[str, str] | None = None,
    needs: dict[str, Any] | None = None,
    more: Sequence[dict[str, Any]] = (),
) -> DeltaState:
    store = FakeStore()
    described = metadata(schema_of(*fields), partitions=partitions, configuration=configuration)
    store.put_commit(0, needs or protocol(), described, *more)
    state = run(delta_on(store).open())
    assert state is not None
    return state


def array(element: Any, contains_null: bool = True) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": contains_null}


def map_of(key: Any, value: Any, contains_null: bool = True) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": contains_null}


TABLE = (
    field("id", nullable=False),
    field("name", "string"),
    field("price", "decimal(10,2)"),
    field("s", struct(field("x", "integer"), field("y", "string", nullable=False))),
    field("tags", array(struct(field("k", "string")), False)),
    field("m", map_of("string", "double")),
)
