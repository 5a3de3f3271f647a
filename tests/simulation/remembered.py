"""Seeds that have noticed each deliberate fault. Tried first, they make a fault cost a seed or two and not hundreds.

They are a short cut and no promise: every change of the protocol or of the stories gives some seeds another history.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from .all_faults import format_of
from .runner import Failure, run_seeds

# Most faults are seen within some hundred seeds; those that take a rare history within this many.
SEEDS = 6000
MAX_REMEMBERED = 3
# Where there are several among so few.
FEW_SEEDS = 200
FILE = Path(__file__).with_name("remembered.json")


# What a fault fails with that no longer fits the code which it breaks: nobody has noticed anything then.
_OUTDATED = ("TypeError", "AttributeError", "NameError", "ImportError")


def notices(seed: int, fault: str) -> bool:
    """The seed fails with the fault, and does not without it."""
    table_format = format_of(fault)
    failures = run_seeds(seed, 1, fault, table_format).failures
    return any(map(is_the_judges, failures)) and not run_seeds(seed, 1, None, table_format).failures


def is_the_judges(failure: Failure) -> bool:
    return not any(f" ended with {error}" in failure.reason for error in _OUTDATED)


def seeds_that_notice(fault: str, most: int = SEEDS) -> Iterator[int]:
    """In their order, all that there are among the first `most`."""
    seed, table_format = 0, format_of(fault)
    while seed < most:
        failures = run_seeds(seed, most - seed, fault, table_format, stop_at_failure=True).failures
        if not failures:
            return
        seed = failures[0].seed
        if is_the_judges(failures[0]) and not run_seeds(seed, 1, None, table_format).failures:
            yield seed
        seed += 1


def remembered() -> dict[str, list[int]]:
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def first_that_notices(fault: str, known: Sequence[int]) -> int | None:
    """The first of the known seeds that still notices the fault; None where none does."""
    return next((seed for seed in known if notices(seed, fault)), None)


def to_remember(fault: str, known: Sequence[int], most: int) -> list[int]:
    """What is known of the fault as far as that still notices it, otherwise what a search among `most` finds."""
    found = islice(seeds_that_notice(fault, most), MAX_REMEMBERED if most < SEEDS else 1)
    return _quickest_first(fault, known) or _quickest_first(fault, found)


def _quickest_first(fault: str, seeds: Iterable[int]) -> list[int]:
    """Those that notice the fault. Some live on with it for long before they do."""
    seconds = {}
    for seed in seeds:
        began = time.process_time()
        if notices(seed, fault):
            seconds[seed] = time.process_time() - began
    return sorted(seconds, key=lambda seed: (round(seconds[seed]), seed))


def remember(seeds: dict[str, list[int]]) -> None:
    """A line for each fault, so that changes are easy to read and to merge."""
    lines = (f"  {json.dumps(fault)}: {json.dumps(found)}" for fault, found in sorted(seeds.items()))
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
