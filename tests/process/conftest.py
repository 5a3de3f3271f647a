from __future__ import annotations

import os
import random
import secrets
from functools import partial
from pathlib import Path

import pytest

from .processes import driver_starter

# Their assertions are the tests' own: a failure shows the values.
pytest.register_assert_rewrite("tests.process.evidence", "tests.process.directories")

FORMATS = ("delta", "parquet")

SEED_VARIABLE = "LAKECOMMIT_TEST_SEED"


def pytest_collection_modifyitems(items):
    """Processes are watched through /proc, and start several times in a test, on a machine that may be busy."""
    here = Path(__file__).parent
    for item in items:
        if here not in item.path.parents:
            continue
        if not Path("/proc/self/stat").exists():
            item.add_marker(pytest.mark.skip(reason="needs /proc"))
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="session")
def seed():
    """What chance is made from. Set the variable to see the same again, as far as processes can be made to."""
    return int(os.environ.get(SEED_VARIABLE) or secrets.randbelow(2**32))


@pytest.fixture
def rng(request, seed):
    print(f"{SEED_VARIABLE}={seed}")
    return random.Random(f"{seed} {request.node.name}")


@pytest.fixture
def start(tmp_path):
    """Starts a driver process for a job; none is left when the test ends."""
    with driver_starter(tmp_path) as starter:
        yield starter


@pytest.fixture(scope="session", params=FORMATS)
def table_format(request):
    """Every test that has this runs on Delta tables and on Parquet directories."""
    return request.param


@pytest.fixture(scope="session")
def assert_exactly_once(spark):
    """Called with a stream that is over: every row of its input is in the table once, as Spark reads it, too."""
    from . import tables  # noqa: PLC0415 (assertions are rewritten where it is imported after this file)

    return partial(tables.assert_exactly_once, spark)
