import pytest

from tests.formats import table_format
from tests.lake import Lake

__all__ = ["table_format"]


@pytest.fixture
def table(table_format) -> Lake:
    """On each format, unless the test is marked `delta_log`."""
    return Lake.in_memory()
