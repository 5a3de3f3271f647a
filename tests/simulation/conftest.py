"""Time for as many seeds as are asked for."""

from __future__ import annotations

import pytest

SEEDS_PER_SECOND = 20


def pytest_collection_modifyitems(config, items):
    seconds = config.getoption("--sim-seeds") // SEEDS_PER_SECOND
    for item in items:
        if "summary" in getattr(item, "fixturenames", ()) and seconds > float(config.getini("timeout")):
            item.add_marker(pytest.mark.timeout(seconds))
