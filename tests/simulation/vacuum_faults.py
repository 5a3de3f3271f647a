"""Deliberate faults in what is made of somebody else's vacuum."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from lakecommit import presence

from .faults import fault


@fault
def vacuum_not_looked_at() -> Iterator[None]:
    """Files are committed though the log tells of a vacuum that may have taken them."""

    with patch.object(presence, "vacuumed", lambda files, vacuums: None):
        yield


@fault
def vacuum_taken_for_over_when_it_begins() -> Iterator[None]:
    """Files that are there are committed while somebody is about to delete them."""

    def never(files: Any, vacuums: Any, now_ms: int) -> bool:
        return False

    with patch.object(presence, "is_endangered", never):
        yield
