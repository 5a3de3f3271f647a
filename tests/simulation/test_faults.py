"""The simulation can fail: it catches every deliberate fault within a bounded number of seeds.

Seeds that have caught one are remembered and tried first; where none of them does any more, all are searched.
"""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from multiprocessing.pool import ApplyResult
from pathlib import Path

import pytest

from .all_faults import FAULTS, RARE
from .remembered import SEEDS, first_that_notices, remembered, seeds_that_notice

pytestmark = pytest.mark.simulation

HERE = Path(__file__).parent
REMEMBERED = remembered()


def seed_that_notices(name: str) -> tuple[int | None, bool]:
    """A seed that fails with the fault and does not without it, None where none does; and whether it was known."""
    known = first_that_notices(name, REMEMBERED.get(name, []))
    return (known, True) if known is not None else (searched(name), False)


def searched(name: str) -> int | None:
    return next(seeds_that_notice(name), None)


def asked_for(request, test: str) -> list[str]:
    """The faults that a test is run for, in the order of the tests."""
    return [item.callspec.params["name"] for item in request.session.items if getattr(item, "originalname", "") == test]


@pytest.fixture(scope="module")
def noticed(request, pool) -> dict[str, ApplyResult[tuple[int | None, bool]]]:
    """The seeds for all faults that are asked for, tried side by side."""
    asked = asked_for(request, "test_a_fault_in_the_protocol_is_caught")
    return {name: pool.apply_async(seed_that_notices, (name,)) for name in asked}


@pytest.fixture(scope="module")
def found(request, pool) -> dict[str, ApplyResult[int | None]]:
    asked = asked_for(request, "test_a_fault_in_the_protocol_is_found_by_a_search")
    return {name: pool.apply_async(searched, (name,)) for name in asked}


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_in_the_protocol_is_caught(name, noticed):
    seed, was_known = noticed[name].get()
    assert seed is not None, f"{SEEDS} seeds did not notice: {name}"
    if not was_known:
        warnings.warn(f"no remembered seed notices: {name}. To search less: make sim ARGS=--remember", stacklevel=1)


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(FAULTS.keys() - RARE))
def test_a_fault_in_the_protocol_is_found_by_a_search(name, found):
    """Whoever changes the stories need not know which seed to try; of a fault that is there, one seed is proof."""
    assert found[name].get() is not None, f"{SEEDS} seeds did not notice: {name}"


def test_the_command_line_takes_every_fault():
    declared = [
        name.replace("_", " ")
        for path in HERE.glob("*faults.py")
        for name in re.findall(r"^@(?:rare_|parquet_|reading_)?fault\ndef (\w+)", path.read_text(), re.MULTILINE)
    ]
    run = [sys.executable, "-m", "tests.simulation", "--help"]
    output = subprocess.run(run, cwd=HERE.parents[1], capture_output=True, check=True, text=True).stdout
    choices = re.search(r"--fault {(.*?)}", " ".join(output.split())).group(1)
    assert choices.split(",") == sorted(declared)
