"""`make test`: tests with Spark run beside all others, and what either of them finds counts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.__main__ import exit_code

ROOT = Path(__file__).parents[2]


def test_each_test_is_in_one_half():
    command = [sys.executable, "-m", "tests", "--collect-only", "-q", "tests/spark/test_driver_calls.py"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    (others, of_all), (spark, of_all_again) = re.findall(r"(\d+)/(\d+) tests collected", ended.stdout)
    assert of_all == of_all_again
    assert int(others) > 0
    assert int(spark) > 0
    assert int(others) + int(spark) == int(of_all)


@pytest.mark.parametrize(
    ("codes", "expected"),
    [((0, 0), 0), ((1, 0), 1), ((0, 1), 1), ((0, -9), -9), ((5, 0), 0), ((0, 5), 0), ((5, 1), 1), ((5, 5), 5)],
)
def test_a_half_that_fails_fails_both_and_one_without_tests_does_not(codes, expected):
    assert exit_code(*codes) == expected
