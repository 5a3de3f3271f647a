"""The simulation can fail: it catches every deliberate fault within a bounded number of seeds."""

from __future__ import annotations

import pytest

from . import cleaning_faults, pending_faults  # noqa: F401 (they register their own)
from .faults import FAULTS
from .runner import run_seeds

pytestmark = pytest.mark.simulation

SEEDS = 3000


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_in_the_protocol_is_caught(name):
    seed = 0
    while seed < SEEDS:
        failures = run_seeds(seed, SEEDS - seed, name, stop_at_failure=True).failures
        assert failures, f"{SEEDS} seeds did not notice: {name}"
        seed = failures[0].seed + 1
        # A seed that fails all the same says nothing about the fault.
        if not run_seeds(failures[0].seed, 1).failures:
            return
    raise AssertionError(f"{SEEDS} seeds did not notice: {name}")
