"""A store for the demo's driver that holds back versions of the table, so that epochs are sealed and pending when it
is killed. On its own a version follows its seal within milliseconds, which no kill can be aimed at."""

from __future__ import annotations

import asyncio
import json
from functools import partial

from lakecommit import committers
from lakecommit.formats.delta.names import LOG
from lakecommit.model import OWN_MARK_PREFIX
from lakecommit.storage.base import CreateOutcome, Store
from lakecommit.storage.counting import CountingStore


def hold_versions_from(epoch: int) -> None:
    """No version that this process commits from here on has epochs from `epoch` on: it waits until it is killed.

    Before: the committer has opened no table yet.
    """
    setattr(committers, "CountingStore", partial(_Holding, epoch))  # noqa: B010 (the name is a class elsewhere)


class _Holding(CountingStore):
    def __init__(self, epoch: int, store: Store) -> None:
        super().__init__(store)
        self._epoch = epoch

    async def create(self, path: str, body: bytes) -> CreateOutcome:
        if path.startswith(f"{LOG}/") and _newest_epoch(body) >= self._epoch:
            await asyncio.Event().wait()
        return await super().create(path, body)


def _newest_epoch(body: bytes) -> int:
    """The newest epoch that a version of the table covers, -1 where it covers none."""
    actions = (json.loads(line) for line in body.splitlines() if b'"txn"' in line)
    marks = [action["txn"] for action in actions if "txn" in action]
    return max((mark["version"] for mark in marks if mark["appId"].startswith(OWN_MARK_PREFIX)), default=-1)
