"""Deliberate faults in how the log is kept short."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from lakecommit.formats.delta.log import live, reading
from lakecommit.formats.delta.upkeep import checkpointing, expiry
from lakecommit.releasing import upkeep

from .faults import all_of, fault


@contextmanager
def _not_read_back() -> Iterator[None]:
    """What was written is not compared with the table."""
    with patch.object(checkpointing, "contradiction", lambda *args: None):
        yield


@fault
def checkpoint_without_marks_of_the_one_before() -> Iterator[None]:
    """Only what was said since is in it."""

    def take_older(self: Any, actions: Any) -> None:
        # Versions are read an action at a time.
        of_a_version = len(actions) == 1
        real(self, [each for each in actions if of_a_version or "txn" not in each])

    real = live.OtherActions.take_older
    with all_of(_not_read_back(), patch.object(live.OtherActions, "take_older", take_older)):
        yield


@fault
def checkpoint_with_the_metadata_of_the_one_before() -> Iterator[None]:
    """A schema that has grown since, or a property, is lost with it."""

    def kept_actions(others: Any, *args: Any) -> Any:
        return [each for each in real(others, *args) if "metaData" not in each] + [{"metaData": oldest[id(others)]}]

    def take_older(self: Any, actions: Any) -> None:
        for each in actions:
            if each.get("metaData") is not None:
                oldest[id(self)] = each["metaData"]
        real_take(self, actions)

    oldest: dict[Any, Any] = {}
    real, real_take = checkpointing.kept_actions, live.OtherActions.take_older
    with all_of(
        _not_read_back(),
        patch.object(checkpointing, "kept_actions", kept_actions),
        patch.object(live.OtherActions, "take_older", take_older),
    ):
        yield


@fault
def checkpoint_with_files_that_were_removed() -> Iterator[None]:
    """A version that removes a file of the checkpoint before is not heeded."""

    def said_remove(self: Any, key: str) -> bool:
        return False

    with patch.object(live.LiveFiles, "_said_remove", said_remove):
        yield


@fault
def checkpoint_under_the_number_of_the_next_version() -> Iterator[None]:
    def checkpoint_path(version: int) -> str:
        return real(version + 1)

    real = checkpointing.checkpoint_path
    with patch.object(checkpointing, "checkpoint_path", checkpoint_path):
        yield


@fault
def hint_before_its_checkpoint() -> Iterator[None]:
    async def create(store: Any, path: str, body: bytes, *args: Any) -> Any:
        class Finished:
            actions = files = size_bytes = 0

        await checkpointing._point_to(store, int(path[11:31]), Finished())  # type: ignore[arg-type]
        return await real(store, path, body, *args)

    real = checkpointing._create
    with patch.object(checkpointing, "_create", create):
        yield


@fault
def log_read_by_the_hint_alone() -> Iterator[None]:
    """Whoever does not find the checkpoint that it names has no table."""

    async def list_log_from(store: Any, version: int | None) -> Any:
        return await real(store, 10**9 if version is None else version)

    async def hinted_version(store: Any) -> Any:
        return await real_hint(store) or 0

    real, real_hint = reading.list_log_from, reading.hinted_version
    with all_of(
        patch.object(reading, "list_log_from", list_log_from), patch.object(reading, "hinted_version", hinted_version)
    ):
        yield


@fault
def log_cleaned_up_to_the_newest_checkpoint() -> Iterator[None]:
    """Whatever the table retains."""

    def boundary(objects: Any, before_ms: int, oldest_read: Any) -> Any:
        return real(objects, 2**62, oldest_read)

    real = expiry._boundary
    with patch.object(expiry, "_boundary", boundary):
        yield


@fault
def log_cleaned_up_to_what_has_expired() -> Iterator[None]:
    """No matter whether a checkpoint is there."""

    def boundary(objects: Any, before_ms: int, oldest_read: Any) -> Any:
        found = expiry.arrange(objects)
        old = [
            version
            for version, info in zip(found.commits, found.commit_files, strict=True)
            if info.modified_ms <= before_ms
        ]
        return max(old, default=None)

    with patch.object(expiry, "_boundary", boundary):
        yield


@fault
def checkpoint_of_the_boundary_deleted() -> Iterator[None]:
    def checkpoints_before(boundary: int, objects: Any) -> Any:
        return real(boundary + 1, objects)

    real = expiry._checkpoints_before
    with patch.object(expiry, "_checkpoints_before", checkpoints_before):
        yield


@fault
def upkeep_never_due() -> Iterator[None]:
    with patch.object(upkeep, "is_due", lambda *args: False):
        yield


@fault
def log_that_was_written_over_not_noticed() -> Iterator[None]:
    """A checkpoint has what was read, whatever is there by now."""

    async def is_unchanged(store: Any, log: Any) -> bool:
        await real(store, log)
        return True

    real = checkpointing._is_unchanged
    with patch.object(checkpointing, "_is_unchanged", is_unchanged):
        yield
