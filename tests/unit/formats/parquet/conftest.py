import pytest

from tests.lake import Lake
from tests.lake.directory import Directory


@pytest.fixture
def table() -> Directory:
    lake = Lake.in_memory()
    return Directory(lake.clock, lake.store, lake.flaky)
