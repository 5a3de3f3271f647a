"""Deliberate faults in what is made of somebody else's vacuum."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from lakecommit.committing import loop
from lakecommit.errors import SchemaMismatch
from lakecommit.releasing import batch_versions, replaced
from lakecommit.restarting import presence

from .faults import all_of, fault, rare_fault


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


@fault
def committed_again_without_a_look_for_files() -> Iterator[None]:
    """What was in a version that somebody wrote over is named by none, so that a vacuum takes it."""

    async def all_there(store: Any, location: Any, epochs: Any) -> None:
        return None

    async def none_missing(store: Any, epochs: Any) -> list[list[str]]:
        return [[] for _ in epochs]

    with all_of(
        patch.object(replaced, "check_present", all_there),
        patch.object(batch_versions, "missing_files", none_missing),
    ):
        yield


@rare_fault
def files_said_to_be_gone_by_an_old_table() -> Iterator[None]:
    """A driver that slept says that a vacuum took its files. Another one has run the epoch and deleted them since."""

    with patch.object(loop, "FilesGone", SchemaMismatch):
        yield
