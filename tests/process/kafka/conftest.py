"""One broker and one Spark session with Kafka's jars for all tests here."""

from __future__ import annotations

import pytest

from .broker import local_broker
from .jars import broker_jars, source_jars
from .sessions import driver_process


@pytest.fixture(scope="session")
def jars():
    """The class paths of a broker and of Spark's Kafka source."""
    return broker_jars(), source_jars()


@pytest.fixture(scope="session")
def on_driver(jars, tmp_path_factory):
    """Runs a function of `driver` where Spark and Kafka are."""
    broker_classpath, source_classpath = jars
    with (
        local_broker(broker_classpath, tmp_path_factory.mktemp("broker")) as address,
        driver_process(address, source_classpath, tmp_path_factory.mktemp("warehouse")) as call,
    ):
        yield call
