"""The committed files of a table's newest version, for readers that would otherwise take what they find."""

from __future__ import annotations

import random
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from lakecommit.clock import SystemClock
from lakecommit.concurrency.threads import run_in_thread
from lakecommit.formats.base import Open, ReadFiles, TableState
from lakecommit.formats.files import CommittedFile
from lakecommit.formats.registry import format_at, format_named, no_table
from lakecommit.storage.location import open_store


class OpenAndRead(Open, ReadFiles, Protocol):
    """The verbs that it takes of a format."""

    @property
    def name(self) -> str: ...


async def open_for_files(table_format: OpenAndRead) -> tuple[TableState | None, AsyncIterator[Sequence[CommittedFile]]]:
    """The newest version and the pages of its files; None for the version of a log that another writer has begun, and
    whose files can be listed all the same. Raises `InvalidInput` if there is neither."""
    state = await table_format.open()
    if state is None and not format_named(table_format.name).foreign:
        raise no_table(table_format.name, table_format.location)
    return state, table_format.files(state)


def list_files(location: str, store_options: Mapping[str, str]) -> list[str]:
    """The locations of all of them. The caller may be in a loop, as notebooks are."""
    store = open_store(location, store_options)

    async def gathered() -> list[str]:
        table_format = await format_at(
            store, clock=SystemClock(), new_id=lambda: str(uuid.uuid4()), random=random.random
        )
        _, pages = await open_for_files(table_format)
        return [file.location async for page in pages for file in page]

    return run_in_thread(gathered())
