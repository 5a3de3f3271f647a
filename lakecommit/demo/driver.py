"""The demo's stream as a driver of its own, so that it can be killed: `python -m lakecommit.demo.driver SETTINGS`.

Prints a line of JSON for each epoch that has ended, and nothing else, to standard output.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import lakecommit
from lakecommit.demo import scenario
from lakecommit.testing.sessions import delta_session


@dataclass(frozen=True, slots=True)
class DriverSettings:
    location: str
    store_options: Mapping[str, str]
    source: str
    checkpoint: str

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def main() -> None:
    settings = DriverSettings(**json.loads(sys.argv[1]))
    spark = delta_session("lakecommit-demo", extra_conf=scenario.SESSION_SETTINGS)
    lakecommit.register(spark)

    def progress(epochs: int, rows: int, duration_ms: int) -> None:
        print(json.dumps({"epochs": epochs, "rows": rows, "duration_ms": duration_ms}), flush=True)

    options = {f"store.{key}": value for key, value in settings.store_options.items()}
    scenario.run_stream(spark, Path(settings.source), settings.location, options, Path(settings.checkpoint), progress)
    spark.stop()


if __name__ == "__main__":
    main()
