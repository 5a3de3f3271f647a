"""Processes for seeds, which use every core."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator
from multiprocessing.pool import Pool

import pytest


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """Ends with whatever is still running in it: a test that met its limit leaves its seeds behind."""
    # Not by fork: the tests have threads.
    with multiprocessing.get_context("spawn").Pool(os.cpu_count(), initializer=_end_with_the_tests) as running:
        yield running


def _end_with_the_tests() -> None:
    """However they end: whoever is killed ends no pool."""
    threading.Thread(target=_wait_for_the_end, daemon=True).start()


def _wait_for_the_end() -> None:
    tests = multiprocessing.parent_process()
    assert tests is not None
    tests.join()
    os._exit(1)
