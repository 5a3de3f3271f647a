"""Deliberate faults in what listeners are told, and in what is kept for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from lakecommit.committing import table as table_committer
from lakecommit.listening import calls, delivery, feed, places, table
from lakecommit.model import Epoch
from lakecommit.releasing import query as queries

from .faults import fault, rare_fault


async def _nothing(*args: Any) -> None:
    return None


@fault
def refusal_of_a_listener_swallowed() -> Iterator[None]:
    async def tell(self: Any) -> None:
        try:
            await real(self)
        except calls.ListenerFailed:
            self._epoch, self._snapshot = Epoch(self._snapshot.last_epoch), None

    real = delivery.Delivery._tell
    with patch.object(delivery.Delivery, "_tell", tell):
        yield


@fault
def listener_begins_with_what_is_committed_after_a_restart() -> Iterator[None]:
    async def read_or_create(self: Any, store: Any, first: Epoch) -> places.ListenerPlace:
        return replace(await real(self, store, first), epoch=first)

    real = places.StoredPlaces.read_or_create
    with patch.object(places.StoredPlaces, "read_or_create", read_or_create):
        yield


@fault
def snapshot_before_its_listeners_have_a_place() -> Iterator[None]:
    with patch.object(table.Listening, "query_read", _nothing):
        yield


@rare_fault
def listeners_forget_a_run_that_goes_on() -> Iterator[None]:
    def knows(self: Any, query: Any) -> bool:
        return query in self._feeds and self._of(query).keys() >= set(self._listeners)

    with patch.object(table.Listening, "knows", knows):
        yield


@fault
def released_before_listeners_were_told() -> Iterator[None]:
    with patch.object(table.Listening, "told_up_to", _nothing):
        yield


@fault
def released_before_the_place_is_durable() -> Iterator[None]:
    with patch.object(delivery.Delivery, "durable", property(lambda self: self._epoch)):
        yield


@fault
def cleaned_up_before_listeners_were_told() -> Iterator[None]:
    with patch.object(queries, "told_up_to", _nothing):
        yield


@fault
def newest_snapshot_told_first() -> Iterator[None]:
    def after(self: Any, epoch: Epoch) -> Any:
        found = real(self, epoch)
        return found if found is None or not self._held else self._held[-1]

    real = feed.Feed.after
    with patch.object(feed.Feed, "after", after):
        yield


@fault
def place_saved_ahead_of_what_was_told() -> Iterator[None]:
    async def save(self: Any) -> None:
        self._epoch = self._feed.end
        await real(self)

    real = delivery.Delivery._save
    with patch.object(delivery.Delivery, "_save", save):
        yield


@fault
def oldest_place_counts() -> Iterator[None]:
    """As if the one that was created first stood for good."""
    with patch.object(places, "max", min, create=True):
        yield


@fault
def place_written_over() -> Iterator[None]:
    """One object for all places, as long as nobody comes late."""

    async def create(self: Any, store: Any, number: int, body: bytes) -> None:
        await store.put(places.layout.place_path(self._query, self._name, 0), body)

    with patch.object(places.StoredPlaces, "_create", create):
        yield


@fault
def state_not_restored() -> Iterator[None]:
    async def restore(self: Any) -> None:
        self._unrestored = None

    with patch.object(delivery.Delivery, "_restore", restore):
        yield


@fault
def what_another_driver_told_is_taken_for_lost() -> Iterator[None]:
    async def catch_up(self: Any) -> None:
        self._may_be_behind = False

    with patch.object(delivery.Delivery, "_catch_up", catch_up):
        yield


@fault
def told_from_the_store_with_one_epoch_too_few() -> Iterator[None]:
    async def stored(self: Any, store: Any, query: Any, links: Any, version: int) -> Any:
        return await real(self, store, query, links[-1:], version)

    real = delivery.Teller.stored
    with patch.object(delivery.Teller, "stored", stored):
        yield


@fault
def epoch_waits_for_its_listeners() -> Iterator[None]:
    async def committed(self: Any, *args: Any) -> Any:
        outcome = await real(self, *args)
        await self._listening.settle()
        return outcome

    real = table_committer.TableCommitter._committed
    with patch.object(table_committer.TableCommitter, "_committed", committed):
        yield
