"""Partitions whose files are not in directories of their values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakecommit.listening.events import _partitions
from lakecommit.model import DataFile, Epoch, Pending, QueryId
from tests.unit.writing.tools import column, plan_of

DAY = column("day", "string", **{"delta.columnMapping.physicalName": "col-1"})


@pytest.mark.parametrize("partitioned", [True, False])
def test_a_partition_is_told_once_with_the_directory_that_its_values_have(partitioned: bool) -> None:
    plan = replace(plan_of([DAY, column("id", "long")], ["day"] if partitioned else []), random_prefix=2)
    values = [{"col-1": value} for value in ("a/b", "a/b", None)] if partitioned else [{}] * 3
    files = tuple(DataFile(f"x{number}/f.parquet", each, 1, 1, "{}", 0) for number, each in enumerate(values))
    told = _partitions([Pending(QueryId("q"), Epoch(0), plan.to_json(), files)])
    expected = [({"day": "a/b"}, "col-1=a%2Fb"), ({"day": None}, "col-1=__HIVE_DEFAULT_PARTITION__")]
    assert [(each.values, each.directory) for each in told] == (expected if partitioned else [])
