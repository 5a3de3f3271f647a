"""What is common to processes that work for another one."""

from __future__ import annotations

import os
from pathlib import Path

from lakecommit.concurrency import apart


def test_its_files_go_where_they_are_told_to(tmp_path: Path) -> None:
    assert apart.environment(str(tmp_path))["TMPDIR"] == str(tmp_path)
    assert apart.environment().get("TMPDIR") == os.environ.get("TMPDIR")
