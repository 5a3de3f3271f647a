"""The simulation can fail: it catches every deliberate fault within a bounded number of seeds."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import pytest

from . import cleaning_faults, listening_faults, pending_faults  # noqa: F401 (they register their own)
from .faults import FAULTS
from .runner import run_seeds

pytestmark = pytest.mark.simulation

SEEDS = 3000


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
def noticed(request) -> dict[str, int | None]:
    """The seeds for all faults that are asked for, found side by side."""
    asked = [item.callspec.params["name"] for item in request.session.items if item.module is request.module]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        return dict(zip(asked, pool.map(seed_that_notices, asked), strict=True))


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_in_the_protocol_is_caught(name, noticed):
    assert noticed[name] is not None, f"{SEEDS} seeds did not notice: {name}"
