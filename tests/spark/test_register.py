"""What `register` does to a session, and what it leaves alone."""

from __future__ import annotations

import pytest

import lakecommit
from lakecommit.spark_ext.registration import TRANSFER

pytestmark = pytest.mark.spark

BYTES, ROWS = TRANSFER


def test_rows_bound_what_goes_to_python_at_once(spark):
    session = spark.newSession()
    lakecommit.register(session)
    lakecommit.register(session)
    assert {key: session.conf.get(key) for key in TRANSFER} == TRANSFER


@pytest.mark.parametrize("key", [BYTES, ROWS])
def test_a_session_that_bounds_it_by_itself_is_left_alone(spark, key):
    session = spark.newSession()
    defaults = {key: session.conf.get(key) for key in TRANSFER}
    session.conf.set(key, "5000")
    lakecommit.register(session)
    assert {key: session.conf.get(key) for key in TRANSFER} == defaults | {key: "5000"}
