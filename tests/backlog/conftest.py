from __future__ import annotations

import pytest

from .epochs import Epoch


@pytest.fixture
def told(monkeypatch):
    """The epochs that the committer is told about from here on."""
    from lakecommit.spark_ext.session import SparkSessions  # noqa: PLC0415 (tests without Spark must not need it)
    from lakecommit.wire import Verb  # noqa: PLC0415

    epochs = []
    facts = SparkSessions.facts

    def recording(self, request):
        found = facts(self, request)
        if request.verb is Verb.COMMIT_EPOCH:
            epochs.append(Epoch(request.epoch, found.planned, found.latest))
        return found

    monkeypatch.setattr(SparkSessions, "facts", recording)
    return epochs
