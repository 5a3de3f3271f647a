"""Coroutines for callers that have no loop, or have one already, as notebooks do."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run_in_thread(work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns, run to its end in a thread and a loop of its own."""
    with ThreadPoolExecutor(1, "lakecommit") as thread:
        return thread.submit(asyncio.run, work).result()
