"""What tests of every kind share: one Spark session and one local S3 per process, each started when first asked for."""

from __future__ import annotations

import uuid

import pytest

from lakecommit.demo.place import Place
from lakecommit.testing.s3 import LocalS3
from lakecommit.testing.sessions import delta_session
from tests.process.faulty_proxy import faulty_proxy

# Every query of a test is tiny and runs once, so that compiling it costs more than it saves.
QUICK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
}


def pytest_addoption(parser):
    parser.addoption("--sim-seeds", type=int, default=3000, metavar="N", help="how many seeds the simulation runs")


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A session with Delta and with lakecommit registered."""
    import lakecommit  # noqa: PLC0415 (tests without Spark must not need it)

    warehouse = tmp_path_factory.mktemp("warehouse")
    session = delta_session("lakecommit-tests", extra_conf={**QUICK, "spark.sql.warehouse.dir": str(warehouse)})
    lakecommit.register(session)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def local_s3():
    with LocalS3() as s3:
        s3.create_bucket("lake")
        yield s3


@pytest.fixture
def place_on_s3(local_s3):
    """A table of its own, as the test itself reaches it."""
    return Place(f"s3://lake/{uuid.uuid4().hex}", local_s3.store_options(), local_s3)


@pytest.fixture
def proxy(local_s3):
    """A way to S3 that is faultless until a test adds rules."""
    with faulty_proxy(local_s3.endpoint) as running:
        yield running


def pytest_collection_modifyitems(items):
    """Whatever needs the session is marked so, and runs after everything that does not."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    items.sort(key=lambda item: item.get_closest_marker("spark") is not None)
