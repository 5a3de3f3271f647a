"""Which Spark lakecommit works with. Imports nothing of it, so that it can be asked before anything else is."""

from __future__ import annotations

from lakecommit.errors import InvalidInput

OLDEST = (4, 2)


def check_version(version: str) -> None:
    found = tuple(int(part) for part in version.split(".")[:2])
    if found < OLDEST:
        raise InvalidInput(
            f"lakecommit works with Spark {OLDEST[0]}.{OLDEST[1]} and newer, this is {version}; install one with: "
            f"pip install 'pyspark>={OLDEST[0]}.{OLDEST[1]}' (on a cluster: also there)"
        )
