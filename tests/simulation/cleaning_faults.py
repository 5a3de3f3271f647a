"""Deliberate faults in what is deleted, and when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from lakecommit.progress.standing import Standing
from lakecommit.releasing import batches, objects, table
from lakecommit.releasing import query as queries
from lakecommit.state import stored
from lakecommit.state.stored import list_manifests, list_sealed_epochs

from .faults import all_of, fault


@fault
def losers_deleted_before_the_seal() -> Iterator[None]:
    """Of several attempts at a task the newest is taken for the winner, before anybody has said so."""

    async def step(self: Any, known: Any) -> Any:
        for query in self._queries:
            manifests = await list_manifests(self._store, query)
            sealed = await list_sealed_epochs(self._store, query)
            for epoch, named in manifests.items():
                if epoch > max(sealed, default=-1):
                    newest = {each.attempt.task: each.attempt.id for each in named}
                    lost = [each for each in named if newest[each.attempt.task] != each.attempt.id]
                    await objects.delete(self._store, await objects.read_files(self._store, lost), [])
        return await real(self, known)

    real = table.TableHousekeeper.step
    with patch.object(table.TableHousekeeper, "step", step):
        yield


@fault
def release_before_coverage() -> Iterator[None]:
    def releasable(standings: Any, committed: Any, young: Any) -> Any:
        released = real(standings, committed, young)
        done = [epoch for epoch, at in standings.items() if at is Standing.DONE]
        newest = max(done, default=None)
        due = newest is not None and committed is not None and newest <= committed and newest not in young
        return [*released, newest] if due and released == sorted(done)[:-1] else released

    real = queries.releasable
    with patch.object(queries, "releasable", releasable):
        yield


@fault
def release_without_the_deadline() -> Iterator[None]:
    with all_of(patch.object(queries, "RELEASE_AGE_MS", 0), patch.object(stored, "RELEASE_AGE_MS", 0)):
        yield


@fault
def release_while_a_loser_may_still_upload() -> Iterator[None]:
    with patch.object(stored.NamedManifest, "is_old", lambda self, now_ms: True):
        yield


@fault
def seal_deleted_with_the_manifests() -> Iterator[None]:
    """The seal does not wait until the deletion of the manifests is confirmed."""

    async def delete(*args: Any) -> Any:
        deleted = await real(*args)
        return objects.Deleted(deleted.files, deleted.manifests, (), deleted.unconfirmed)

    real = queries.delete
    with patch.object(queries, "delete", delete):
        yield


@fault
def manifest_deleted_before_its_files() -> Iterator[None]:
    """A manifest does not wait until the deletion of the files that it names is confirmed."""

    async def delete(store: Any, lost: Any, manifests: Any) -> Any:
        await store.delete(lost.paths)
        return await real(store, objects.NamedFiles(), manifests)

    real = objects.delete
    with all_of(patch.object(queries, "delete", delete), patch.object(batches, "delete", delete)):
        yield


@fault
def chain_not_followed() -> Iterator[None]:
    """Every seal counts, also one that a zombie created again after its release."""
    with patch.object(queries, "chained", lambda links: frozenset(link.epoch for link in links)):
        yield


@fault
def log_not_asked() -> Iterator[None]:
    async def everything(table_format: Any, found: Any) -> Any:
        return found

    with all_of(
        patch.object(queries, "without_the_tables", everything), patch.object(batches, "without_the_tables", everything)
    ):
        yield


@fault
def no_fence_before_a_clean() -> Iterator[None]:
    async def no_fence(*args: Any) -> None:
        return None

    with patch.object(batches, "fence", no_fence):
        yield


@fault
def seals_read_before_the_mark_by_a_cleaner() -> Iterator[None]:
    """And what has no seal is taken for lost: an epoch that is committed in between loses its files."""

    async def survey(self: Any, *args: Any, **more: Any) -> Any:
        seen[id(self._store), self._query] = await list_sealed_epochs(self._store, self._query)
        return await real(self, *args, **more)

    async def remembered(store: Any, query: Any) -> Any:
        return seen[id(store), query]

    def losers(standing: Any, seal: Any, manifests: Any) -> Any:
        return list(manifests) if standing is Standing.UNSEALED else real_losers(standing, seal, manifests)

    async def everything(table_format: Any, found: Any) -> Any:
        return found

    seen: dict[Any, Any] = {}
    real, real_losers = queries.QueryCleaner.survey, queries.losers
    with all_of(
        patch.object(queries.QueryCleaner, "survey", survey),
        patch.object(queries, "list_sealed_epochs", remembered),
        patch.object(queries, "losers", losers),
        patch.object(queries, "without_the_tables", everything),
        patch.object(stored.NamedManifest, "is_old", lambda self, now_ms: now_ms - self.modified_ms > 1000),
    ):
        yield


@fault
def manifests_read_before_the_mark() -> Iterator[None]:
    """An epoch that is written, committed and old when a sleeper reads on loses its seal, and keeps its manifests."""

    async def survey(self: Any, *args: Any, **more: Any) -> Any:
        seen[id(self._store), self._query] = await list_manifests(self._store, self._query)
        await self._clock.sleep(30 * 60)
        return await real(self, *args, **more)

    async def remembered(store: Any, query: Any) -> Any:
        return seen[id(store), query]

    seen: dict[Any, Any] = {}
    real = queries.QueryCleaner.survey
    with all_of(
        patch.object(queries.QueryCleaner, "survey", survey), patch.object(queries, "list_manifests", remembered)
    ):
        yield
