"""docs/architecture.md speaks of what is there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.project.test_rooms import LAYER_OF

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def test_every_file_that_it_names_exists():
    named = re.findall(r"`((?:lakecommit|state|spark_ext|tests)/[\w/]+\.py)`", PAGE)
    assert len(named) > 50
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_room_is_on_the_map():
    drawn = PAGE.partition("## The map")[2].partition("Calls go down only")[0]
    assert {room for room in LAYER_OF if not re.search(rf"\b{room}\b", drawn)} == set()
