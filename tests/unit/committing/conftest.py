"""The tests of this directory run on each format."""

import pytest

from tests.formats import table_format

__all__ = ["table_format"]


@pytest.fixture(autouse=True)
def on_each_format(table_format):
    """They make their tables themselves."""
