"""`make test`: the parts of the tests run side by side, and what any of them finds counts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.__main__ import exit_code

ROOT = Path(__file__).parents[2]


def test_each_test_is_in_one_part():
    files = ["tests/spark/test_driver_calls.py", "tests/spark/test_drivers.py", "tests/interop/test_filters.py"]
    command = [sys.executable, "-m", "tests", "--collect-only", "-q", *files]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = re.findall(r"(\d+)/(\d+) tests collected", ended.stdout)
    parts, of_all = [int(part) for part, _ in found], {int(of_all) for _, of_all in found}
    assert len(parts) == 4
    assert all(parts)
    assert {sum(parts)} == of_all


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ((0, 0, 0), 0),
        ((1, 0, 0), 1),
        ((0, 0, 1), 1),
        ((0, -9, 0), -9),
        ((5, 0, 5), 0),
        ((0, 5, 5), 0),
        ((5, 1, 0), 1),
        ((5, 5, 5), 5),
    ],
)
def test_a_part_that_fails_fails_all_and_one_without_tests_does_not(codes, expected):
    assert exit_code(*codes) == expected
