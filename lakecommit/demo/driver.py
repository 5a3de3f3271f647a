"""The demo's stream as a driver of its own, so that it can be killed: `python -m lakecommit.demo.driver SETTINGS`.

Prints a line of JSON for each epoch that has ended, an empty object when all input is read, and nothing else, to
standard output. Then it waits until all of it is in the table.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import lakecommit
from lakecommit.demo import scenario
from lakecommit.demo.holding import hold_versions_from
from lakecommit.testing.sessions import delta_session

LONGEST_DRAIN_SECONDS = 300


@dataclass(frozen=True, slots=True)
class DriverSettings:
    """From epoch `hold` on nothing gets into the table: this driver is to be killed."""

    location: str
    store_options: Mapping[str, str]
    source: str
    checkpoint: str
    hold: int | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def main() -> None:
    settings = DriverSettings(**json.loads(sys.argv[1]))
    if settings.hold is not None:
        hold_versions_from(settings.hold)
    spark = delta_session("lakecommit-demo", extra_conf=scenario.SESSION_SETTINGS)
    lakecommit.register(spark)

    def progress(epochs: int, rows: int, duration_ms: int) -> None:
        print(json.dumps({"epochs": epochs, "rows": rows, "duration_ms": duration_ms}), flush=True)

    options = {f"store.{key}": value for key, value in settings.store_options.items()}
    scenario.run_stream(spark, Path(settings.source), settings.location, options, Path(settings.checkpoint), progress)
    print("{}", flush=True)
    lakecommit.drain(LONGEST_DRAIN_SECONDS)
    spark.stop()


if __name__ == "__main__":
    main()
