"""What tests of every kind share: one Spark session and one local S3 per process, each started when first asked for."""

from __future__ import annotations

import os
import tempfile
import uuid
from pathlib import Path

import pytest

from lakecommit.demo.place import Place
from lakecommit.testing.s3 import LocalS3
from lakecommit.testing.sessions import delta_session
from tests.process.faulty_proxy import faulty_proxy
from tests.quick import QUICK, make_spark_home
from tests.spark.connect_server import connect_session

PARTS = ("others", "session", "interop", "drivers")


def pytest_addoption(parser):
    parser.addoption("--sim-seeds", type=int, default=500, metavar="N", help="how many seeds the simulation runs")
    parser.addoption("--part", choices=PARTS, help="only tests of one part; `python -m tests` runs all side by side")
    parser.addoption("--connect", action="store_true", help="the session is one of Spark Connect")


def pytest_configure(config):
    if "SPARK_HOME" not in os.environ:
        home = tempfile.TemporaryDirectory(prefix="lakecommit-spark-")
        config.add_cleanup(home.cleanup)
        make_spark_home(Path(home.name))
        # For the processes that tests start, too.
        os.environ["SPARK_HOME"] = home.name


@pytest.fixture(scope="session")
def spark(request, tmp_path_factory):
    """A session with Delta and with lakecommit registered."""
    import lakecommit  # noqa: PLC0415 (tests without Spark must not need it)

    settings = {**QUICK, "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))}
    connect = request.config.getoption("--connect")
    with connect_session(settings) if connect else delta_session("lakecommit-tests", extra_conf=settings) as session:
        lakecommit.register(session)
        yield session


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


def pytest_collection_modifyitems(config, items):
    """Whatever needs the session is marked so, and runs after everything that does not."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    # What only Delta's log has is not asked of other formats.
    items[:] = [item for item in items if not (item.get_closest_marker("delta_log") and _format_of(item) != "delta")]
    items.sort(key=needs_spark)
    part = config.getoption("--part")
    if part is not None:
        config.hook.pytest_deselected(items=[item for item in items if part_of(item) != part])
        items[:] = [item for item in items if part_of(item) == part]


def needs_spark(item) -> bool:
    return item.get_closest_marker("spark") is not None


def part_of(item) -> str:
    """Two halves of the tests with a session, those that start drivers of their own, and all that need no Spark."""
    if not needs_spark(item):
        return "others"
    if "spark" not in item.fixturenames:
        return "drivers"
    # The first file of tests/spark goes with tests/interop, so that both take as long.
    return "session" if "spark" in item.path.parts and item.path.name > "test_c" else "interop"


def _format_of(item) -> str:
    callspec = getattr(item, "callspec", None)
    return "delta" if callspec is None else callspec.params.get("table_format", "delta")
