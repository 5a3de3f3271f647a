"""The table formats by the names that `tableFormat` takes, each imported when it is first asked for.

A format is a package with `table` (`open_format`) and `settings` (`SETTINGS`), and one line here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module

from lakecommit.clock import Clock
from lakecommit.errors import InvalidInput
from lakecommit.formats.base import FormatStore
from lakecommit.formats.settings import FormatSettings
from lakecommit.formats.table_format import TableFormat
from lakecommit.storage.base import List

_PACKAGES: dict[str, str] = {
    "delta": "lakecommit.formats.delta",
    "parquet": "lakecommit.formats.parquet",
}
NAMES = tuple(_PACKAGES)
DEFAULT = NAMES[0]


@cache
def format_named(name: str) -> FormatSettings:
    """Precondition: `name` is one of `NAMES`."""
    found = import_module(f"{_PACKAGES[name]}.settings").SETTINGS
    assert isinstance(found, FormatSettings)
    return found


def open_format(
    name: str, store: FormatStore, *, clock: Clock, new_id: Callable[[], str], random: Callable[[], float]
) -> TableFormat:
    """The table at the store's location, whether there is one or not. Precondition: `name` is one of `NAMES`."""
    opened: TableFormat = import_module(f"{_PACKAGES[name]}.table").open_format(
        store, clock=clock, new_id=new_id, random=random
    )
    return opened


async def has_log(store: List, name: str) -> bool:
    """Whether a table of this format is there, whatever is in its log. One page of a listing."""
    async for page in store.list(format_named(name).log):
        if page:
            return True
    return False


def no_table(name: str, location: str, then: str = "") -> InvalidInput:
    """What is said where `format_at` has found this format, and there is no table; `then` is what follows from that."""
    foreign = format_named(name).foreign
    if foreign:
        return InvalidInput(f"{location} is no table of lakecommit{then}, but {foreign}")
    return InvalidInput(f"there is no table at {location}{then}; check the location")


async def format_at(
    store: FormatStore, *, clock: Clock, new_id: Callable[[], str], random: Callable[[], float]
) -> TableFormat:
    """The same where nobody says which format it is: by the log that is there, or else as the default one.

    Cost: one page of a listing for each format but the default one.
    """
    for name in _PACKAGES:
        if name != DEFAULT and await has_log(store, name):
            return open_format(name, store, clock=clock, new_id=new_id, random=random)
    return open_format(DEFAULT, store, clock=clock, new_id=new_id, random=random)
