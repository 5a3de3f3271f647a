"""The line of the log that each snapshot has: what it holds, what it took, and how it came about."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

import pytest

from lakecommit.formats.plan import WritePlan
from lakecommit.service.dispatch import Committers, Facts
from lakecommit.service.wire import Request, Verb
from lakecommit.state.codec import encode_report
from tests.formats import used
from tests.lake import QUERY, SCHEMA, Lake, Named
from tests.lake.virtual_time import run_virtually

pytestmark = pytest.mark.delta_log


class Driver:
    """A query whose epochs come as they do from Spark's workers, and whose source says where it is."""

    def __init__(self, lake) -> None:
        self._lake = lake
        self._committers = Committers(
            clock=lake.clock, open_at=lambda *_, **__: lake.store, random_fraction=lambda: 0.5
        )

    async def epoch(self, epoch, *, files, latest=None) -> None:
        """Ends at offset `epoch`; `latest` is what its source had when the run began."""
        planned = await self._ask(Verb.PLAN, Facts(queries=(QUERY,)))
        plan = replace(planned, plan=WritePlan.from_json(planned.plan))
        report = await self._lake.report(plan, epoch, 0, Named(files))
        facts = Facts(
            fingerprint=f"to {epoch}",
            planned=(at(epoch),),
            latest=() if latest is None else (at(latest),),
            queries=(QUERY,),
        )
        await self._ask(Verb.COMMIT_EPOCH, facts, epoch=epoch, reports=(encode_report(report),))

    async def _ask(self, verb, facts, **more):
        return await self._committers.answer(Request(verb, {"path": "memory://table"}, SCHEMA, True, **more), facts)

    async def drain(self) -> None:
        await self._committers.drain()


def at(offset: int) -> str:
    return json.dumps({"orders": {"0": offset}})


def lines_of(scenario, caplog) -> list[dict[str, str]]:
    """The pairs of each line that the snapshots of a scenario make."""

    async def with_a_lake(clock):
        lake = Lake.in_virtual_time(clock)
        # A version takes a quarter of a second, and everything else a millisecond.
        lake.store.version_ms = 250
        await scenario(lake, Driver(lake))

    with caplog.at_level(logging.INFO, "lakecommit.observing"):
        run_virtually(with_a_lake)
    lines = [each.getMessage().split(" ") for each in caplog.records if each.name == "lakecommit.observing"]
    assert all(line[0] == "snapshot" for line in lines)
    return [dict(pair.split("=", 1) for pair in line[1:]) for line in lines]


def test_a_line_says_all_of_its_snapshot(caplog):
    async def scenario(lake, driver):
        await driver.epoch(0, files=2)

    assert lines_of(scenario, caplog) == [
        {
            "table": "memory://table",
            "version": "1",
            "query": QUERY,
            "epochs": "0-0",
            "files": "2",
            "rows": "20",
            "bytes": "200",
            "requests": "1",
            "attempts": "1",
            "waited_ms": "251",
            "backlog": "false",
            "watermark": "none",
        }
    ]


def test_the_epochs_of_a_backlog_are_one_line_with_the_waiting_time_of_the_first(caplog):
    async def scenario(lake, driver):
        await driver.epoch(0, files=1, latest=9)
        for epoch in (1, 2):
            await driver.epoch(epoch, files=epoch)
            await lake.clock.sleep(5)
        await driver.drain()

    (line,) = lines_of(scenario, caplog)
    shown = {key: line[key] for key in ("epochs", "files", "rows", "bytes", "attempts", "backlog")}
    assert shown == {"epochs": "0-2", "files": "4", "rows": "40", "bytes": "400", "attempts": "1", "backlog": "true"}
    assert 10_250 <= int(line["waited_ms"]) < 10_300


@pytest.mark.parametrize("others", [1, 3])
def test_every_version_that_was_tried_counts_as_an_attempt_with_its_requests(caplog, others):
    async def scenario(lake, driver):
        await driver.epoch(0, files=1)
        left = [{"commitInfo": {"operation": "OPTIMIZE"}}] * others

        def somebody_is_faster(path):
            if path.startswith(used().directory) and left:
                lake.store.objects[path] = used().body([left.pop()])

        lake.store.before_create = somebody_is_faster
        lake.store.requests.clear()
        await driver.epoch(1, files=1)
        of_the_log = [path for _, path in lake.store.requests if path.startswith(used().directory)]
        assert (len(of_the_log) > others + 1, left) == (True, [])
        requests.append(str(len(of_the_log)))

    requests: list[str] = []
    line = lines_of(scenario, caplog)[-1]
    assert (line["epochs"], line["version"]) == ("1-1", str(2 + others))
    assert (line["attempts"], [line["requests"]]) == (str(1 + others), requests)
