"""Deliberate faults in how lakecommit vacuums: beside readers, beside writers, and beside other vacuums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from lakecommit.leases import cutting, listed
from lakecommit.state.lease_layout import CUTS
from lakecommit.storage.base import Found
from lakecommit.vacuuming import candidates, stored, sweeping, vacuum

from .faults import all_of, reading_fault


class _Store:
    """A store of which some verbs do something else."""

    def __init__(self, store: Any, **verbs: Any) -> None:
        self._store = store
        self.__dict__.update(verbs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def _cutting_with(make: Any) -> Any:
    """The guarded cut, on another store."""

    async def guarded_cut(store: Any, *args: Any, **more: Any) -> Any:
        return await real(make(store), *args, **more)

    real = cutting.guarded_cut
    return patch.object(vacuum, "guarded_cut", guarded_cut)


@reading_fault
def vacuum_that_does_not_look_for_its_intent() -> Iterator[None]:
    def make(store: Any) -> Any:
        async def get(path: str) -> Any:
            await store.get(path)
            return Found(b"", "")

        return _Store(store, get=get)

    with _cutting_with(make):
        yield


@reading_fault
def no_intent() -> Iterator[None]:
    def make(store: Any) -> Any:
        async def create(path: str, body: bytes) -> Any:
            return cutting_created

        async def get(path: str) -> Any:
            return Found(b"", "")

        return _Store(store, create=create, get=get)

    from lakecommit.storage.base import Created  # noqa: PLC0415

    cutting_created = Created("")
    with _cutting_with(make):
        yield


@reading_fault
def no_cut() -> Iterator[None]:
    def make(store: Any) -> Any:
        async def put(path: str, body: bytes) -> Any:
            return None if path.startswith(CUTS) else await store.put(path, body)

        return _Store(store, put=put)

    with _cutting_with(make):
        yield


@reading_fault
def leases_listed_before_the_intent_is_put() -> Iterator[None]:
    async def create_anew(store: Any, *args: Any, **more: Any) -> Any:
        before[id(store)] = await listed.list_leases(store)
        return await real(store, *args, **more)

    async def list_leases(store: Any) -> Any:
        return before.pop(id(store))

    before: dict[int, Any] = {}
    real = cutting.create_anew
    with all_of(patch.object(cutting, "create_anew", create_anew), patch.object(cutting, "list_leases", list_leases)):
        yield


@reading_fault
def intent_looked_for_before_the_cut_is_put() -> Iterator[None]:
    def make(store: Any) -> Any:
        async def put(path: str, body: bytes) -> Any:
            if not path.startswith(CUTS):
                return await store.put(path, body)
            waits.append((path, body))
            return None

        async def get(path: str) -> Any:
            found = await store.get(path)
            for each in waits if found is not None else ():
                await store.put(*each)
            waits.clear()
            return found

        waits: list[tuple[str, bytes]] = []
        return _Store(store, put=put, get=get)

    with _cutting_with(make):
        yield


@reading_fault
def cut_of_a_fenced_run_left() -> Iterator[None]:
    def make(store: Any) -> Any:
        async def delete(paths: Any) -> Any:
            return await store.delete([path for path in paths if not path.startswith(CUTS)])

        return _Store(store, delete=delete)

    with _cutting_with(make):
        yield


@reading_fault
def cut_withdrawn_at_the_end() -> Iterator[None]:
    async def end_run(store: Any, done: Any, clock_run: str) -> None:
        await real(store, done, clock_run)
        if isinstance(done, cutting.Cut):
            await store.delete([cutting.CutName(done.version, done.run).path])

    real = cutting.end_run
    with patch.object(vacuum, "end_run", end_run):
        yield


@reading_fault
def leases_not_minded() -> Iterator[None]:
    with patch.object(cutting, "as_far_as", lambda newest, leases: newest):
        yield


@reading_fault
def newest_lease_minded_alone() -> Iterator[None]:
    def as_far_as(newest: int, leases: Any) -> int:
        return min([newest, *([max(each.name.version for each in leases)] if leases else [])])

    with patch.object(cutting, "as_far_as", as_far_as):
        yield


@reading_fault
def lease_that_keeps_its_version_alone() -> Iterator[None]:
    """What versions after it have added may go, though its reader reads them next."""

    def page(self: Any, last: int, after_id: int, size: int) -> Any:
        rows = self._rows("SELECT id, path FROM gone WHERE id > ? ORDER BY id LIMIT ?", after_id, size)
        own = kept.get(id(self), set())
        return [(number, path) for number, path in rows if path not in own]

    async def guarded_cut(store: Any, newest: int, now_ms: int, **more: Any) -> Any:
        found = await real(store, newest, now_ms, **more)
        database = more["worth"].__self__
        if isinstance(found, cutting.Cut):
            versions = store._world.model.versions.versions
            held = {path for each in found.kept_by for path in versions[each.name.version].live}
            kept[id(database)] = held
            if found.version < newest:
                await store.put(cutting.CutName(newest, found.run).path, b"{}")
        return found

    kept: dict[int, set[str]] = {}
    real = cutting.guarded_cut
    with all_of(patch.object(vacuum, "guarded_cut", guarded_cut), patch.object(candidates.Candidates, "page", page)):
        yield


@reading_fault
def vacuum_that_goes_by_its_own_clock() -> Iterator[None]:
    async def store_now(store: Any, run: str) -> int:
        await real(store, run)
        return int(store._process.clock.wall_ms())

    real = cutting.store_now
    with patch.object(vacuum, "store_now", store_now):
        yield


@reading_fault
def more_deleted_than_was_cut() -> Iterator[None]:
    def page(self: Any, last: int, after_id: int, size: int) -> Any:
        return real(self, 2**62, after_id, size)

    real = candidates.Candidates.page
    with patch.object(candidates.Candidates, "page", page):
        yield


@reading_fault
def swept_though_not_confirmed() -> Iterator[None]:
    async def sweep(*args: Any) -> Any:
        found = await real(*args)
        found.unconfirmed = 0
        return found

    real = sweeping.sweep
    with patch.object(vacuum, "sweep", sweep):
        yield


@reading_fault
def swept_beyond_the_cut() -> Iterator[None]:
    async def note_swept(store: Any, found: Any, version: int) -> None:
        await real(store, found, version + 1)

    real = stored.note_swept
    with patch.object(stored, "note_swept", note_swept):
        yield


@reading_fault
def retention_not_minded() -> Iterator[None]:
    with patch.object(vacuum, "last_old", lambda log, before_ms: log.newest):
        yield


@reading_fault
def what_was_put_back_may_go() -> Iterator[None]:
    """A file that a version removed is a candidate, whatever later versions add."""
    with all_of(
        patch.object(candidates.Candidates, "added", lambda self, paths: None),
        patch.object(candidates.Candidates, "live_in_base", lambda self, page, base: None),
    ):
        yield


@reading_fault
def newer_versions_not_looked_for() -> Iterator[None]:
    async def look(table_format: Any, candidates: Any, last: Any, swept: Any) -> Any:
        return last

    with patch.object(sweeping, "_look", look):
        yield


def _left(what: str) -> Any:
    async def end_run(store: Any, done: Any, clock_run: str) -> None:
        async def delete(paths: Any) -> Any:
            return await store.delete([path for path in paths if what not in path])

        await real(_Store(store, delete=delete), done, clock_run)

    real = cutting.end_run
    return patch.object(vacuum, "end_run", end_run)


@reading_fault
def dead_leases_left() -> Iterator[None]:
    with _left("/leases/"):
        yield


@reading_fault
def own_intent_left() -> Iterator[None]:
    with _left("/intents/"):
        yield


@reading_fault
def own_clock_left() -> Iterator[None]:
    with _left("/clock/"):
        yield


@reading_fault
def lower_cuts_left() -> Iterator[None]:
    with _left("/cuts/"):
        yield


@reading_fault
def litter_of_dead_vacuums_left() -> Iterator[None]:
    with patch.object(stored, "_is_litter", lambda info, now_ms: False):
        yield
