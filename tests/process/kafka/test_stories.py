"""The stories on a real broker: what the committer is told, and the backlog that follows from it."""

from __future__ import annotations

import pytest

from tests.unit.progress.expectations import EXPECTATIONS

from .stories import STORIES

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(900)]


@pytest.mark.parametrize("story", STORIES)
def test_the_offsets_of_kafka(on_driver, tmp_path, story):
    EXPECTATIONS[story](STORIES[story](on_driver, str(tmp_path)))
