"""Listings of seals and manifests: what they show, and how many pages they ask for."""

from __future__ import annotations

import asyncio

import pytest

from lakecommit.model import Attempt, AttemptId, Epoch, QueryId, TaskId
from lakecommit.state import layout
from lakecommit.state.stored import epochs_after, list_epochs_after, list_manifests, list_sealed_epochs
from tests.lake.stores import FakeStore

QUERY = QueryId("q")


class CountingStore(FakeStore):
    """Counts listings, also those that show nothing."""

    listings = 0

    def list(self, prefix, *, start_after=None):
        self.listings += 1
        return super().list(prefix, start_after=start_after)


def store_with(*, seals=(), manifests=()) -> CountingStore:
    store = CountingStore()
    for epoch in seals:
        store.objects[layout.seal_path(QUERY, Epoch(epoch))] = b"seal"
    for epoch in manifests:
        for task in (0, 1):
            attempt = Attempt(QUERY, Epoch(epoch), TaskId(task), AttemptId("a" * 32))
            store.objects[layout.manifest_path(attempt, 0)] = b"manifest"
    return store


@pytest.mark.parametrize(
    ("after", "last", "expected"),
    [
        (None, None, [0, 1, 2, 5]),
        (1, None, [2, 5]),
        (None, 1, [0, 1]),
        (0, 2, [1, 2]),
        (2, 4, []),
        (5, None, []),
        (4, 9, [5]),
    ],
)
def test_manifests_are_listed_after_an_epoch_and_up_to_another(after, last, expected):
    store = store_with(manifests=(0, 1, 2, 5))
    found = asyncio.run(list_manifests(store, QUERY, after, last))
    assert {epoch: len(named) for epoch, named in found.items()} == dict.fromkeys(expected, 2)


def test_no_page_is_asked_for_beyond_the_last_epoch():
    store = store_with(manifests=range(10))
    store.page_size = 2
    assert list(asyncio.run(list_manifests(store, QUERY, Epoch(2), Epoch(4)))) == [3, 4]
    assert len(store.requests) == 3, "the third shows that there is no more"


@pytest.mark.parametrize(
    ("own", "here", "anywhere", "listings"),
    [
        (None, [3, 4, 5], [3, 4, 5], 1),
        (3, [4, 5], [4, 5], 1),
        (5, [5], [5], 1),
        # Its seal is gone: whoever needs the newest of all looks once more.
        (7, [], [5], 2),
    ],
)
def test_the_epochs_after_a_mark(own, here, anywhere, listings):
    store = store_with(seals=(3, 4, 5))
    own = None if own is None else Epoch(own)
    assert asyncio.run(list_epochs_after(store, QUERY, own)) == here
    assert store.listings == 1
    assert asyncio.run(epochs_after(store, QUERY, own)) == anywhere
    assert store.listings == 1 + listings
    assert asyncio.run(list_sealed_epochs(store, QUERY, own)) == [each for each in here if own is None or each > own]
