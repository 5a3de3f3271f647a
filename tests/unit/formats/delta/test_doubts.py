"""What `doctor` and `status` say of a Delta table."""

import pytest

from tests.unit.vacuuming.tools import Table, add, run


def doubts(table):
    table_format = table.format()
    return [each.says for each in table_format.doubts(run(table_format.open()))]


def info(operation):
    return {"commitInfo": {"timestamp": 1_700_000_000_000, "operation": operation, "operationParameters": {}}}


def test_a_table_that_nothing_is_wrong_with():
    assert doubts(Table([add("a")], [info("WRITE"), add("b")])) == []


def test_vacuums_of_others_know_no_leases():
    (said,) = doubts(Table([info("VACUUM START")], [info("VACUUM END")]))
    assert "VACUUM START" in said and "leases" in said


@pytest.mark.parametrize(("retention", "short"), [("interval 1 hours", True), ("7 days", False), ("30 days", False)])
def test_a_retention_that_is_shorter_than_the_usual_one(retention, short):
    found = doubts(Table(metadata={"configuration": {"delta.deletedFileRetentionDuration": retention}}))
    assert ["deletedFileRetentionDuration" in said for said in found] == [True] * short
