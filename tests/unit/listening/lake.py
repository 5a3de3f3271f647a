"""A partitioned table, streams that write to it, and listeners that note what they are told."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

from lakecommit.model import Epoch
from lakecommit.progress.settings import TableSettings
from lakecommit.state import codec, layout
from lakecommit.storage.location import open_store
from tests.lake import QUERY, Lake, Named
from tests.lake.stores import SlowStore

SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "day", "type": "string", "nullable": True, "metadata": {}},
        ],
    }
)
SETTINGS = TableSettings(partition_columns=("day",), properties={})
DAY_US = 86_400_000_000


class Recorder:
    """A listener that notes what it is told; `failures` are raised instead, one at a time."""

    def __init__(self, name="recorder"):
        self.name = name
        self.told = []
        self.failures: list[BaseException] = []

    def on_snapshot(self, snapshot):
        if self.failures:
            raise self.failures.pop(0)
        self.told.append(snapshot)

    @property
    def epochs(self) -> list[tuple[int, int]]:
        return [(each.first_epoch, each.last_epoch) for each in self.told]


class Counter(Recorder):
    """One that remembers how many rows it was told of, by query."""

    def __init__(self, name="counter"):
        super().__init__(name)
        self.rows: dict[tuple[str, str], int] = {}

    def on_snapshot(self, snapshot):
        super().on_snapshot(snapshot)
        key = (snapshot.table, snapshot.query)
        self.rows[key] = self.rows.get(key, 0) + snapshot.rows

    def state(self, table, query):
        return self.rows.get((table, query), 0)

    def restore(self, table, query, state):
        self.rows[table, query] = state


def place_path(epoch=None, name="recorder", query=QUERY) -> str:
    """The path of a place; of the first one where no epoch is given."""
    return layout.place_path(query, name, 0 if epoch is None else epoch + 1)


def by_day(clock: Any, location: str | None = None, lake: type[Lake] = Lake) -> Lake:
    """A lake whose tasks name a file for each day; without a location in memory, where every request takes a moment."""
    store = SlowStore(clock, read_ms=1, version_ms=1) if location is None else open_store(location, {})
    tasks = (Named(days=("2026-01-01",)),)
    return lake(clock, store, schema=SCHEMA, settings=SETTINGS, tasks=tasks, numbers=itertools.count())


async def place_of(lake: Lake, name="recorder", query=QUERY):
    """The place that counts."""
    paths = await lake.paths(layout.places_prefix(query, name))
    return json.loads((await lake.store.get(paths[-1])).body) if paths else None


async def copy_of_seal(lake: Lake, query, epoch, **changes) -> bytes:
    """The seal of an epoch, changed."""
    found = await lake.store.get(layout.seal_path(query, Epoch(epoch)))
    return codec.encode_seal(replace(codec.decode_seal(found.body, "seal"), **changes))
