"""What goes with an epoch that replaces the table: all that is in it, asked anew before every try.

Its rows owe nothing to the table, so that nothing of others is in its way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lakecommit.formats.base import Commit, TableState
from lakecommit.formats.change import Scope, Selection
from lakecommit.model import DataFile
from lakecommit.progress.table import TableView


class ReplacedTable:
    """Keeps the files of the version that replaced the table last: if nobody has written since, nothing is asked."""

    def __init__(self, table: TableView, table_format: Commit) -> None:
        self._table = table
        self._format = table_format
        self._latest: tuple[TableState, tuple[DataFile, ...]] | None = None
        self._selection: Selection | None = None

    async def select(self, files: Sequence[DataFile]) -> Selection:
        """What has to go so that `files` are all that is there. It is closed by the next call, or by `close`."""
        self.close()
        table = self._table.known
        if self._latest is not None and _is_the_same(self._latest[0], table):
            self._selection = self._format.selection_of(table, self._latest[1])
        if self._selection is None:
            self._selection = await self._format.select(table, table.version, Scope(), files)
        return self._selection

    def landed(self, table: TableState, files: Sequence[DataFile]) -> None:
        """`files` are all that is in the table now. Their statistics are not needed any more."""
        self._latest = (table, tuple(replace(file, stats="") for file in files))

    def forget(self) -> None:
        """Nobody replaces the table any more."""
        self._latest = None

    def close(self) -> None:
        if self._selection is not None:
            self._selection.close()
            self._selection = None


def _is_the_same(one: TableState, other: TableState) -> bool:
    """The version may have been written over."""
    known = one.etag is not None and one.etag == other.etag
    return known and (one.table_id, one.version, one.rewritten) == (other.table_id, other.version, other.rewritten)
