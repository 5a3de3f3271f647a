"""Drivers in processes of their own: inline commits, a committer that goes away, what is said of it all."""

from __future__ import annotations

import pytest

from .other_driver import drive

pytestmark = pytest.mark.spark


def test_without_register_spark_finds_the_source_and_workers_commit_inline(one_driver):
    seen = one_driver["inline"]
    assert seen["ids"] == [0, 1, 2, 3, 4, 100, 101, 102, 200]
    # From a snapshot, and on with the version that came.
    assert seen["streamed"] == [[0, 1, 2, 100, 101, 102], [0, 1, 2, 3, 100, 101, 102]]
    assert seen["repeated_files"] == 0, "the tasks of a sealed epoch write nothing, also inline"


@pytest.mark.both_writers
def test_without_register_a_session_that_wants_schemas_merged_has_to_say_so_in_each_write(one_driver):
    """Spark fails by itself, before lakecommit is asked: docs/when-something-is-wrong.md says what to do."""
    seen = one_driver["inline"]["merged"]
    (refusal,) = seen["refusals"]
    assert "AssertionError: assertion failed" in refusal
    assert seen["ids"] == [1, 2, 3]
    assert seen["columns"] == ["id", "more"]


# In one session: test_unreachable.py.
@pytest.mark.soak
def test_a_committer_that_is_gone_is_replaced_inline(tmp_path):
    assert drive("committer_gone", tmp_path)["ids"] == [1, 2]


@pytest.mark.soak
def test_neither_register_nor_a_stop_says_anything_of_its_own(tmp_path):
    seen = drive("quiet", tmp_path)
    assert [line for line in seen["stderr"].splitlines() if "statically registered" in line] == []
    assert "EOFError" not in seen["stderr"]
