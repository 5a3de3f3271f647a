"""For the tests that run on each format."""

from tests.formats import table_format

__all__ = ["table_format"]
