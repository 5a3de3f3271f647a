"""The page of behaviours is what the tests show."""

from __future__ import annotations

from pathlib import Path

from tests.behaviours import page

DOCS = Path(__file__).parent.parent.parent / "docs"


def test_the_page_is_what_the_tests_show():
    """And every test that it names is there."""
    assert (DOCS / "delta-behaviours.md").read_text() == page(), "run `make docs`"
