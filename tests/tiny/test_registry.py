"""A format is one package and one line in the registry: whoever asks for tables gets it by its name, or by its log."""

from __future__ import annotations

import asyncio

import pytest

from lakecommit.cli.verbs.history import read_history
from lakecommit.cli.verbs.status.verb import read_status
from lakecommit.clock import SystemClock
from lakecommit.formats import registry
from lakecommit.formats.base import Committed
from lakecommit.formats.change import Change, Held, Kind
from lakecommit.model import Epoch, Marks, QueryId, own_mark_id
from lakecommit.observing.follow import Watcher
from lakecommit.storage.location import open_store
from tests.lake import QUERY, SCHEMA

PARTS = {"clock": SystemClock(), "new_id": iter(map(str, range(100))).__next__, "random": lambda: 0.5}


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setitem(registry._PACKAGES, "tiny", "tests.tiny")
    return open_store(str(tmp_path), {})


def made(name, store):
    opened = registry.open_format(name, store, **PARTS)
    return opened, asyncio.run(opened.create(SCHEMA, (), {}))


def epoch(number: int) -> Change:
    marks = ((str(QUERY), number), (own_mark_id(QUERY), number))
    held = Held(QUERY, run=(Epoch(number), Epoch(number)), name="orders")
    return Change(f"of {number}", Kind.APPEND_EPOCHS, marks=marks, holds=(held,))


@pytest.mark.parametrize("name", ["delta", "tiny"])
def test_a_table_is_told_by_its_log(store, name):
    assert asyncio.run(registry.format_at(store, **PARTS)).name == registry.DEFAULT
    made(name, store)
    assert asyncio.run(registry.format_at(store, **PARTS)).name == name


def test_a_format_knows_its_title(store):
    assert [registry.format_named(name).title for name in ("delta", "tiny")] == ["Delta", "Tiny"]


@pytest.mark.parametrize("name", ["delta", "tiny"])
def test_the_command_line_asks_whatever_format_is_there(store, name):
    opened, state = made(name, store)
    watcher = Watcher(store, opened, SystemClock())
    asyncio.run(store.put(f"_lakecommit/users/{QUERY}/seals/.keep", b""))
    assert asyncio.run(watcher.refresh()).version == 0
    for number in range(2):
        outcome = asyncio.run(opened.commit(state, epoch(number)))
        assert isinstance(outcome, Committed)
        state = outcome.state
    status = asyncio.run(read_status(store, SystemClock()))
    assert (status.data()["format"], status.data()["version"]) == (name, 2)
    assert [entry.id for entry in asyncio.run(read_history(store, 2)).entries] == ["of 1", "of 0"]
    watched = asyncio.run(watcher.refresh())
    assert (watched.format, watched.version) == (name, 2)
    assert asyncio.run(opened.query_names(2, [QUERY, QueryId("other")])) == {QUERY: "orders"}
    assert asyncio.run(opened.holding(2, QUERY)).runs == ((1, 1),)
    assert Marks(Epoch(1), Epoch(1)) == Marks(*(Epoch(state.marks[each]) for each in (str(QUERY), own_mark_id(QUERY))))
