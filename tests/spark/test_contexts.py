"""What stays when a process stops its Spark context and makes another; nothing here starts a JVM."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark import SparkContext

import lakecommit
from lakecommit.errors import InvalidInput
from lakecommit.spark_ext import registration


class Context(SparkContext):
    def __init__(self, application):
        self.environment = {}
        self._application = application

    @property
    def applicationId(self):  # noqa: N802 (Spark's name)
        return self._application


class Service:
    """Stands where the committer's service does."""

    made = ()

    def __init__(self, committers, sessions):
        self.directory = "nowhere"
        self.told = {}
        self.closed = False
        Service.made += (self,)

    def listen(self, listeners):
        self.told |= {each.name: each for each in listeners}

    def close(self):
        self.closed = True


class Listener:
    def __init__(self, name):
        self.name = name

    def on_snapshot(self, snapshot):
        pass


def session_of(context):
    return SimpleNamespace(
        version="4.2.0",
        _sc=context,
        _jsparkSession=object(),
        streams=SimpleNamespace(active=(), addListener=lambda listener: None),
        conf={key: "set" for key in registration.TRANSFER},
    )


@pytest.fixture(autouse=True)
def a_process_of_its_own(monkeypatch):
    monkeypatch.setattr(registration, "_drivers", {})
    monkeypatch.setattr(registration, "_listeners", {})
    monkeypatch.setattr(registration, "check_workers", lambda context: None)
    monkeypatch.setattr(registration, "settings_of", lambda session: {})
    monkeypatch.setattr(registration, "announce", lambda session, source: None)
    monkeypatch.setattr(registration, "CommitterService", Service)
    monkeypatch.setattr(Service, "made", ())


def test_listeners_of_earlier_calls_stay_with_the_next_context():
    orders, days, other_days = Listener("orders"), Listener("days"), Listener("days")
    lakecommit.register(session_of(Context("first")), listeners=[orders, days])
    lakecommit.register(session_of(Context("second")))
    first, second = Service.made
    assert (first.closed, second.closed) == (True, False)
    assert second.told == {"orders": orders, "days": days}
    lakecommit.register(session_of(Context("third")), listeners=[other_days])
    assert Service.made[2].told == {"orders": orders, "days": other_days}


def test_a_call_that_is_refused_leaves_no_listener_behind(monkeypatch):
    def refuse(context):
        raise InvalidInput("workers cannot import lakecommit")

    with monkeypatch.context() as patch:
        patch.setattr(registration, "check_workers", refuse)
        with pytest.raises(InvalidInput):
            lakecommit.register(session_of(Context("first")), listeners=[Listener("orders")])
    with pytest.raises(InvalidInput):
        lakecommit.register(session_of(Context("first")), listeners=[Listener("orders"), Listener("no name")])
    lakecommit.register(session_of(Context("first")))
    assert [each.told for each in Service.made] == [{}]
