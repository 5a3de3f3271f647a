"""The page of behaviours is what the tests show."""

from __future__ import annotations

from pathlib import Path

from tests.behaviours import ROWS, page, shown_by

DOCS = Path(__file__).parent.parent.parent / "docs"


def test_the_page_is_what_the_tests_show():
    """And every test that it names is there."""
    assert (DOCS / "delta-behaviours.md").read_text() == page(), "run `make docs`"


def test_each_row_is_shown_by_a_test_of_both_writers():
    assert [row.what for row in ROWS if not any(both for _, both in shown_by(row))] == []
