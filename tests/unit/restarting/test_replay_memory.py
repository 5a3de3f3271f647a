"""A replay of more tasks than may be in memory: what it takes, what it asks for, and that it finds the same."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections import Counter
from dataclasses import replace

import pytest

from lakecommit.errors import ContradictoryState, CorruptState
from lakecommit.formats.evidence import LogAttempts
from lakecommit.formats.plan import WritePlan
from lakecommit.model import (
    Attempt,
    AttemptId,
    DataFile,
    Epoch,
    Manifest,
    Marks,
    QueryId,
    Seal,
    TaskId,
    Totals,
    Winner,
)
from lakecommit.progress.table import Identity
from lakecommit.restarting import replay as replaying
from lakecommit.restarting.replay import Replay, replay
from lakecommit.state import codec, layout
from lakecommit.storage.base import Found
from tests.lake.stores import FakeStore
from tests.unit.formats.delta.fakes import SCHEMA

QUERY = QueryId("11111111-2222-3333-4444-555555555555")
PLAN = WritePlan(SCHEMA, (), (), "table").to_json()
TASKS = 100


class Sealed(FakeStore):
    """The state of a query with epochs of `TASKS` tasks, a file each. Manifests are made when they are read."""

    def __init__(self, epochs: int) -> None:
        super().__init__()
        self.page_size = 1000
        self.reads: Counter[str] = Counter()
        previous = None
        for epoch in map(Epoch, range(epochs)):
            winners = tuple(
                Winner(task, _attempt(epoch, task).id, 1, codec.digest_of([_manifest(_attempt(epoch, task))]))
                for task in map(TaskId, range(TASKS))
            )
            seal = Seal(QUERY, epoch, winners, previous, "table", None, 0, Totals(1, TASKS, TASKS, TASKS))
            previous = self.put_seal(seal)

    def put_seal(self, seal: Seal) -> bytes:
        body = codec.encode_seal(seal)
        self.objects[layout.seal_path(QUERY, seal.epoch)] = body
        return codec.digest_of([body])

    async def get(self, path: str, *, known_etag: str | None = None):
        parsed = layout.parse_manifest_path(path)
        self.reads["seals" if parsed is None else "manifests"] += 1
        body = self.objects.get(path) if parsed is None else _manifest(parsed[0])
        return None if body is None else Found(body, None)


class Log:
    """A table's log that names the files of some attempts."""

    mark_retention = "a property"

    location = "memory://table"

    def __init__(self, *held: AttemptId) -> None:
        self._held = frozenset(held)
        self.asked: list[int] = []

    async def ever_named(self, attempts):
        self.asked.append(len(attempts))
        return LogAttempts(self._held & frozenset(attempts), True)


def _attempt(epoch: Epoch, task: TaskId) -> Attempt:
    return Attempt(QUERY, epoch, task, AttemptId(f"{epoch:016x}{task:016x}"))


def _manifest(attempt: Attempt) -> bytes:
    file = DataFile(layout.data_file_name(attempt, 0), {}, 1, 1, "{}", 0)
    return codec.encode_manifest(Manifest(attempt, 0, PLAN, (file,)))


def replayed(store: Sealed, log: Log | None = None, marks: Marks | None = None) -> tuple[Replay, list[Epoch]]:
    """What a replay finds, and the epochs that it hands over, with all of their manifests."""
    kept: list[Epoch] = []

    def keep(query, epoch, manifests):
        assert [codec.decode_manifest(body, "m").attempt for body in manifests] == [
            _attempt(epoch, task) for task in map(TaskId, range(TASKS))
        ]
        kept.append(epoch)

    found = asyncio.run(replay(store, log or Log(), QUERY, marks or Marks(), Identity("table"), 0, keep))
    return found, kept


@pytest.fixture
def few(monkeypatch):
    """Room for the winners of two epochs in memory, and questions about three at a time."""
    monkeypatch.setattr(replaying, "WINNERS_IN_MEMORY", 2 * TASKS)
    monkeypatch.setattr(replaying, "FILES_ASKED", 3 * TASKS)
    monkeypatch.setattr(replaying, "WINDOW_FILES", 2 * TASKS)


def test_memory_does_not_grow_with_the_tasks_that_are_pending(few):
    peaks = []
    for epochs in (10, 50):
        store = Sealed(epochs)
        tracemalloc.start()
        try:
            replayed(store)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    # The winners of an epoch would take some 22,000 bytes, all else of it takes some thousand.
    assert peaks[1] - peaks[0] < 40 * 5_000


def test_tasks_that_fit_into_memory_are_read_once():
    store = Sealed(7)
    found, kept = replayed(store)
    assert [each.epoch for each in found.pending] == kept == list(range(7))
    assert (store.reads["seals"], store.reads["manifests"]) == (7, 7 * TASKS)


@pytest.mark.parametrize(("marks", "reads"), [(Marks(), 3), (Marks(Epoch(0), Epoch(0)), 2)])
def test_the_seals_of_all_others_are_read_again_when_their_winners_are_needed(few, marks, reads):
    """For their manifests and, where there is no mark, to ask the log."""
    store = Sealed(10)
    found, kept = replayed(store, marks=marks)
    pending = range(0 if marks.mark is None else 1, 10)
    assert [each.epoch for each in found.pending] == kept == list(pending)
    assert store.reads["seals"] == 2 + reads * (len(pending) - 2)
    assert store.reads["manifests"] == len(pending) * TASKS


def test_epochs_without_rows_need_no_room(few):
    store = Sealed(0)
    previous = None
    winners = tuple(Winner(task, _attempt(Epoch(0), task).id, 0, b"") for task in map(TaskId, range(TASKS)))
    for epoch in range(10):
        previous = store.put_seal(Seal(QUERY, Epoch(epoch), winners, previous, "table", None, 0))
    found = asyncio.run(replay(store, Log(), QUERY, Marks(), Identity("table"), 0, lambda *epoch: None))
    assert len(found.pending) == store.reads["seals"] == 10


def test_the_log_is_asked_about_some_attempts_at_a_time(few):
    log = Log()
    replayed(Sealed(10), log)
    assert sum(log.asked) == 10 * TASKS
    assert len(log.asked) == 4
    assert max(log.asked) <= 3 * TASKS


@pytest.mark.parametrize("epoch", [0, 4, 9])
def test_files_that_the_log_names_are_noticed_in_any_of_the_questions(few, epoch):
    store = Sealed(10)
    held = _attempt(Epoch(epoch), TaskId(TASKS - 1)).id
    with pytest.raises(ContradictoryState, match=rf"epochs \[{epoch}\] .* its mark is not"):
        replayed(store, Log(held))
    assert store.reads["manifests"] == 0


def test_everything_is_checked_before_the_first_manifest_is_read(few):
    store = Sealed(10)
    path = layout.seal_path(QUERY, Epoch(9))
    last = codec.decode_seal(store.objects[path], path)
    store.put_seal(replace(last, previous=b"another"))
    with pytest.raises(ContradictoryState, match="two histories"):
        replayed(store)
    assert store.reads["manifests"] == 0


def test_a_seal_that_changes_between_two_reads_is_refused(few):
    """It was released, and created again by a driver that slept."""
    store = Sealed(10)
    path = layout.seal_path(QUERY, Epoch(9))
    again = replace(codec.decode_seal(store.objects[path], path), sealed_ms=7)
    real = store.get

    async def get(name, **more):
        if "/writers/" in name:
            store.put_seal(again)
        return await real(name, **more)

    store.get = get
    with pytest.raises(ContradictoryState, match=r"seal of epoch 9 .* changed while it was read"):
        replayed(store)


def test_a_seal_that_goes_away_between_two_reads_is_missing(few):
    store = Sealed(10)
    real = store.get

    async def get(name, **more):
        if "/writers/" in name:
            store.objects.pop(layout.seal_path(QUERY, Epoch(9)), None)
        return await real(name, **more)

    store.get = get
    with pytest.raises(CorruptState, match=r"seal .* is missing"):
        replayed(store)
