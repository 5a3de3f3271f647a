"""`python -m tests.process.kafka.record > tests/unit/progress/recorded.jsonl` records the stories from a real broker.

The tests that do without a broker have the same expectations of what was recorded.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path

import pyspark

from .broker import local_broker
from .jars import KAFKA, broker_jars, source_jars
from .sessions import driver_process
from .stories import STORIES


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as name,
        local_broker(broker_jars(), Path(name)) as address,
        driver_process(address, source_jars(), Path(name) / "warehouse") as call,
    ):
        stories = {story: tell(call, str(Path(name) / story)) for story, tell in STORIES.items()}
    rows = [
        json.dumps({"story": story, "run": run, **asdict(epoch)})
        for story, runs in stories.items()
        for run, epochs in enumerate(runs)
        for epoch in epochs
    ]
    print(json.dumps({"kafka": KAFKA, "spark": pyspark.__version__}), *rows, sep="\n")


if __name__ == "__main__":
    main()
