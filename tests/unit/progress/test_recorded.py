"""The stories of process/kafka, once recorded from a real broker by `python -m tests.process.kafka.record`."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from .epochs import Epoch
from .expectations import EXPECTATIONS

# First what it was recorded with, then a line for each epoch.
_, *RECORDED = map(json.loads, (Path(__file__).parent / "recorded.jsonl").read_text().splitlines())


@pytest.mark.parametrize("story", EXPECTATIONS)
def test_the_recorded_offsets_of_kafka(story):
    epochs = [each for each in RECORDED if each["story"] == story]
    runs = [
        [Epoch(each["number"], tuple(each["planned"]), tuple(each["latest"])) for each in run]
        for _, run in itertools.groupby(epochs, key=lambda each: each["run"])
    ]
    EXPECTATIONS[story](runs)
