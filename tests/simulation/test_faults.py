"""The simulation can fail: it catches every deliberate fault within a bounded number of seeds."""

from __future__ import annotations

import re
import subprocess
import sys
from multiprocessing.pool import ApplyResult
from pathlib import Path

import pytest

from .all_faults import FAULTS
from .runner import run_seeds

pytestmark = pytest.mark.simulation

# Most are seen within some hundred; those that take a rare history within this many.
SEEDS = 6000
HERE = Path(__file__).parent


def seed_that_notices(name: str) -> int | None:
    """The first seed that fails with the fault, and does not without it; None where none does."""
    seed = 0
    while seed < SEEDS:
        failures = run_seeds(seed, SEEDS - seed, name, stop_at_failure=True).failures
        if not failures:
            return None
        if not run_seeds(failures[0].seed, 1).failures:
            return failures[0].seed
        seed = failures[0].seed + 1
    return None


@pytest.fixture(scope="module")
def noticed(request, pool) -> dict[str, ApplyResult[int | None]]:
    """The seeds for all faults that are asked for, searched side by side in the order of the tests."""
    asked = [
        item.callspec.params["name"]
        for item in request.session.items
        if item.module is request.module and "noticed" in item.fixturenames
    ]
    return {name: pool.apply_async(seed_that_notices, (name,)) for name in asked}


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_in_the_protocol_is_caught(name, noticed):
    assert noticed[name].get() is not None, f"{SEEDS} seeds did not notice: {name}"


def test_the_command_line_takes_every_fault():
    declared = [
        name.replace("_", " ")
        for path in HERE.glob("*faults.py")
        for name in re.findall(r"^@fault\ndef (\w+)", path.read_text(), re.MULTILINE)
    ]
    run = [sys.executable, "-m", "tests.simulation", "--help"]
    output = subprocess.run(run, cwd=HERE.parents[1], capture_output=True, check=True, text=True).stdout
    choices = re.search(r"--fault {(.*?)}", " ".join(output.split())).group(1)
    assert choices.split(",") == sorted(declared)
