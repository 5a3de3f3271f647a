"""What is known of the runs of queries goes with them."""

from __future__ import annotations

import pytest

from lakecommit.model import Epoch, QueryId
from lakecommit.spark_ext import session
from lakecommit.spark_ext.offsets import EpochOffsets

pytestmark = pytest.mark.spark

QUERY = QueryId("11111111-1111-4111-8111-111111111111")


def test_an_epoch_that_is_under_way_when_its_run_ends_leaves_nothing_behind(monkeypatch):
    sessions = session.SparkSessions()
    sessions._runs[QUERY] = "run"

    def ending(*_, **__):
        assert sessions.ended(QUERY, "run")
        return EpochOffsets(latest=("1",))

    monkeypatch.setattr(session, "epoch_offsets", ending)
    sessions._offsets(None, QUERY, Epoch(0))
    assert not any((sessions._runs, sessions._names, sessions._latest_known, sessions._reads))
