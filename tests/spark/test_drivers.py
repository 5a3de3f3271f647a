"""Drivers in processes of their own: inline commits, a committer that goes away, workers with another Python."""

from __future__ import annotations

import pytest

from .other_driver import drive

pytestmark = pytest.mark.spark


def test_without_register_spark_finds_the_source_and_workers_commit_inline(tmp_path):
    seen = drive("unregistered", tmp_path)
    assert seen["ids"] == [0, 1, 2, 100, 101, 102, 200]
    assert seen["repeated_files"] == 0, "the tasks of a sealed epoch write nothing, also inline"


def test_a_committer_that_is_gone_is_replaced_inline(tmp_path):
    assert drive("committer_gone", tmp_path)["ids"] == [1, 2]


def test_workers_that_cannot_import_lakecommit_are_named_with_the_remedy(tmp_path):
    error = drive("other_python", tmp_path)["error"]
    assert "cannot import lakecommit" in error
    assert "PYSPARK_PYTHON=" in error
