"""Ids that count, and the parts that leases take, on a store with a clock of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from lakecommit.leases.who import Who
from lakecommit.state.lease_layout import LeaseName
from tests.lake.clocks import FakeClock
from tests.lake.timed import TimedStore

HOUR_MS = 3_600_000
WHO = Who("a test")


def ids(begin: int = 1) -> Callable[[], str]:
    numbers = itertools.count(begin)
    return lambda: f"{next(numbers):032x}"


def parts(begin: int = 1, clock: Any = None) -> dict[str, Any]:
    return {"new_id": ids(begin), "clock": clock or FakeClock(), "random": lambda: 1.0}


def held(store: TimedStore, version: int, lease: int = 0xA, unique: int = 1, ttl_s: int = 3600) -> LeaseName:
    """Somebody has put this lease by now."""
    name = LeaseName(version, ttl_s, f"{lease:032x}", f"{unique:032x}")
    store.hold(name.path)
    return name
