"""Processes for seeds, which use every core."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from multiprocessing.pool import Pool

import pytest


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """Ends with whatever is still running in it: a test that met its limit leaves its seeds behind."""
    # Not by fork: the tests have threads.
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as running:
        yield running
