"""What the service says and does while epochs are pending: real committers, on local disk, with a slow table."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pytest

from lakecommit.clock import SystemClock
from lakecommit.errors import StillPending
from lakecommit.formats.plan import WritePlan
from lakecommit.model import Attempt, AttemptId, Epoch, QueryId, TaskId
from lakecommit.options.declarations import ProcessOptions
from lakecommit.schema import Field, Primitive, Struct, to_json
from lakecommit.service import server as service_module
from lakecommit.service.dispatch import Committers, Facts, Restart
from lakecommit.service.server import CommitterService, ask
from lakecommit.service.wire import Request, Verb
from lakecommit.state.codec import encode_report
from lakecommit.storage.location import open_store
from lakecommit.writing.attempt import write_attempt
from lakecommit.writing.settings import WriterSettings

SCHEMA = to_json(Struct((Field("id", Primitive("long"), True),)))
QUERY = QueryId("11111111-1111-4111-8111-111111111111")
OTHER = QueryId("22222222-2222-4222-8222-222222222222")


class SlowVersions:
    """A store that answers at once, but for versions of the table while it is `held`. `asked`: one was asked for."""

    def __init__(self, store) -> None:
        self._store = store
        self._go = asyncio.Event()
        self._go.set()
        self.asked = threading.Event()

    def __getattr__(self, name):
        return getattr(self._store, name)

    def hold(self) -> None:
        self._go.clear()
        self.asked.clear()

    async def let_go(self) -> None:
        """On the loop of those who wait."""
        self._go.set()

    async def create(self, path, body):
        if path.startswith("_delta_log/"):
            self.asked.set()
            await self._go.wait()
        return await self._store.create(path, body)


class Driver:
    """A driver's service with two queries into one table; it is its own session."""

    defaults: Mapping[str, str] = MappingProxyType({})

    def __init__(self, location: Path, process: ProcessOptions | None = None) -> None:
        self.stores: dict[Path, SlowVersions] = {}
        self.at(location)
        self.committers = Committers(process=process, open_at=lambda *_, **__: self.store)
        self.service = CommitterService(self.committers, self)

    def at(self, location: Path) -> None:
        """From now on what is asked for is asked of the table there."""
        self.location = str(location)
        if location not in self.stores:
            self.stores[location] = SlowVersions(open_store(self.location, {}))
        self.store = self.stores[location]

    def facts(self, request) -> Facts:
        return Facts(queries=(QUERY, OTHER), defaults=self.defaults)

    def ask(self, verb: Verb, **more):
        # Nobody waits for a snapshot.
        options = {"path": self.location, "commitWait": "0"}
        return ask(self.service.directory, Request(verb, options, SCHEMA, streaming=True, **more))

    def epoch(self, query: QueryId, epoch: int, *tasks: list[int]) -> None:
        """Plans, writes and hands in an epoch; each of `tasks` is the list of ids of one task."""
        plan = WritePlan.from_json(self.ask(Verb.PLAN).plan)
        reports = []
        for task, ids in enumerate(tasks):
            attempt = Attempt(query, Epoch(epoch), TaskId(task), AttemptId(uuid.uuid4().hex))
            batch = pa.record_batch({"id": pa.array(ids, pa.int64())})
            reports.append(write_attempt([batch], attempt, plan, WriterSettings(), self.store, SystemClock()))
        self.ask(Verb.COMMIT_EPOCH, epoch=epoch, reports=tuple(map(encode_report, reports)))

    def resume(self, query: QueryId, repeated: Epoch | None = None, **options: str) -> bool:
        return self.service.resume(Restart(query, {"path": self.location, **options}, repeated=repeated))

    def rows(self) -> int:
        """How many rows the table shows."""
        versions = Path(self.location, "_delta_log").glob("*.json")
        actions = [json.loads(line) for path in versions for line in path.read_text().splitlines()]
        return sum(json.loads(each["add"]["stats"])["numRecords"] for each in actions if "add" in each)


@pytest.fixture
def driver(tmp_path):
    running = Driver(tmp_path / "table")
    yield running
    running.service.close()


@pytest.fixture
def slow_driver(driver):
    """Three epochs of one query and one of another are pending; the version with the first of them is under way."""
    for query in (QUERY, OTHER):
        driver.epoch(query, 0, [0])
    driver.service.drain(60)
    driver.store.hold()
    for epoch in (1, 2, 3):
        driver.epoch(QUERY, epoch, [1], [2])
    driver.epoch(OTHER, 1, [3, 4])
    assert driver.store.asked.wait(60)
    return driver


def of_query(query, epochs, files, location) -> str:
    return f"{epochs} epochs ({files} files) of query {query} are pending in {location}"


def warnings(caplog) -> list[str]:
    return [each.getMessage() for each in caplog.records if "the process ends" in each.getMessage()]


def test_a_process_that_ends_says_what_each_query_has_pending_and_the_next_one_commits_it(
    slow_driver, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(service_module, "LAST_DRAIN_SECONDS", 0.05)
    location = slow_driver.store.location
    with caplog.at_level(logging.WARNING, "lakecommit.service"):
        slow_driver.service.close()
    remedy = f"; the next start of the query commits it, or: lakecommit recover {location} --query"
    assert warnings(caplog) == [
        f"the process ends while {of_query(QUERY, 3, 6, location)}{remedy} {QUERY} --apply",
        f"the process ends while {of_query(OTHER, 1, 1, location)}{remedy} {OTHER} --apply",
    ]
    assert slow_driver.rows() == 2, "only what was committed before"
    successor = Driver(tmp_path / "table")
    try:
        assert not successor.resume(QUERY)
        successor.service.drain(60)
        assert successor.rows() == 2 + 3 * 2
        successor.epoch(QUERY, 4, [5])
        successor.service.drain(60)
        assert successor.rows() == 2 + 3 * 2 + 2 + 1
    finally:
        successor.service.close()


def test_a_process_that_ends_waits_for_a_table_that_answers_and_says_nothing(slow_driver, monkeypatch, caplog):
    drain = slow_driver.committers.drain

    async def while_the_table_answers() -> None:
        await slow_driver.store.let_go()
        await drain()

    monkeypatch.setattr(slow_driver.committers, "drain", while_the_table_answers)
    with caplog.at_level(logging.WARNING, "lakecommit.service"):
        slow_driver.service.close()
    assert warnings(caplog) == []
    assert slow_driver.rows() == 2 + 3 * 2 + 2


def test_a_drain_that_ends_too_early_names_what_is_pending_and_a_later_one_succeeds(slow_driver):
    location = slow_driver.store.location
    with pytest.raises(StillPending) as raised:
        slow_driver.service.drain(0.05)
    assert str(raised.value) == (
        f"after 0.05 s {of_query(QUERY, 3, 6, location)}; {of_query(OTHER, 1, 1, location)}; "
        "wait longer, or let the query's next epoch commit it"
    )
    assert slow_driver.rows() == 2
    slow_driver.service.run(slow_driver.store.let_go())
    slow_driver.service.drain(60)
    assert slow_driver.committers.pending == {}
    assert slow_driver.rows() == 2 + 3 * 2 + 2


def test_a_start_never_fails_and_never_waits_for_ever(slow_driver, monkeypatch, caplog):
    monkeypatch.setattr(service_module, "LONGEST_RESUME_SECONDS", 0.05)
    with caplog.at_level(logging.INFO, "lakecommit.service"):
        assert not slow_driver.resume(QUERY, Epoch(3)), "the table is busy, and this is not known in time"
        assert not slow_driver.resume(QUERY, Epoch(3), misspelt="1")
    assert "misspelt" in caplog.text
    slow_driver.service.run(slow_driver.store.let_go())
    slow_driver.service.close()
    assert not slow_driver.resume(QUERY, Epoch(3)), "there is no committer any more"


def test_the_tables_of_a_process_share_its_memory(tmp_path):
    limit = 2048
    tables = [tmp_path / "one", tmp_path / "two"]
    driver = Driver(tables[0], ProcessOptions(committer_memory_bytes=limit))
    try:
        for table in tables:
            driver.at(table)
            driver.epoch(QUERY, 0, [0])
        driver.service.drain(60)
        for store in driver.stores.values():
            store.hold()
        for table in tables:
            driver.at(table)
            for epoch in range(1, 5):
                driver.epoch(QUERY, epoch, [epoch])
        files = [table._queries._files for table in driver.committers._tables]
        assert len(files) == 2
        assert sum(each.memory_bytes for each in files) <= limit
        assert all(each.memory_bytes + each.spilled_bytes > limit for each in files)
        for store in driver.stores.values():
            driver.service.run(store.let_go())
        driver.service.drain(60)
        for table in tables:
            driver.at(table)
            assert driver.rows() == 5
    finally:
        driver.service.close()


def test_a_session_that_asks_for_memory_too_late_is_told_so_once(driver, caplog):
    with caplog.at_level(logging.WARNING, "lakecommit.service"):
        driver.defaults = {"committerMemory": "32m"}
        driver.ask(Verb.PLAN)
        assert caplog.messages == []
        driver.defaults = {"committerMemory": "64m"}
        driver.ask(Verb.PLAN)
        driver.ask(Verb.PLAN)
    (said,) = caplog.messages
    assert said.startswith("spark.lakecommit.committerMemory=64m has no effect")
    assert "set it before lakecommit.register" in said
