"""A Spark session with Kafka's jars, in a process of its own."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from . import driver


@contextlib.contextmanager
def driver_process(address: str, classpath: str, warehouse: Path) -> Iterator[Callable[..., Any]]:
    """Gives a function that runs functions of `driver` there, one at a time."""
    arguments = (address, classpath, str(warehouse))
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, initializer=driver.begin, initargs=arguments) as pool:

        def call(function: Callable[..., Any], *positional: Any, **named: Any) -> Any:
            return pool.submit(function, *positional, **named).result()

        yield call
        call(driver.end)
