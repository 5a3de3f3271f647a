"""A format for the demo's driver that holds back versions of the table, so that epochs are sealed and pending when it
is killed. On its own a version follows its seal within milliseconds, which no kill can be aimed at."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from lakecommit.formats.base import Committed, Conflict, Moved, TableState
from lakecommit.formats.change import Change
from lakecommit.formats.registry import open_format
from lakecommit.formats.table_format import TableFormat
from lakecommit.model import OWN_MARK_PREFIX
from lakecommit.service import dispatch as committers


def hold_versions_from(epoch: int) -> None:
    """No version that this process commits from here on has epochs from `epoch` on: it waits until it is killed.

    Before: the committer has opened no table yet.
    """
    assert hasattr(committers, "open_format"), "whoever opens tables does so by this name"
    setattr(committers, "open_format", partial(_open_holding, epoch))  # noqa: B010 (the name is a function elsewhere)


def _open_holding(epoch: int, *args: Any, **parts: Any) -> _Holding:
    return _Holding(open_format(*args, **parts), epoch)


class _Holding:
    def __init__(self, table_format: TableFormat, epoch: int) -> None:
        self._format = table_format
        self._epoch = epoch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._format, name)

    async def commit(self, state: TableState, change: Change) -> Committed | Moved | Conflict:
        if any(mark >= self._epoch for name, mark in change.marks if name.startswith(OWN_MARK_PREFIX)):
            await asyncio.Event().wait()
        return await self._format.commit(state, change)
