"""Reports that do not make the epoch that they came for: refused, and the epoch can still be sealed as if they had
never come."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace

import pytest

from lakecommit.errors import ContradictoryState, CorruptState
from lakecommit.model import AttemptId, Report
from lakecommit.service.dispatch import Committers, Facts
from lakecommit.service.wire import Request, Verb
from lakecommit.state import layout
from lakecommit.state.codec import encode_report
from tests.lake import OTHER, QUERY, SCHEMA, SETTINGS, let_go


class Tasks:
    """Attempts at the tasks of epoch 2, which are 0 and 1, and others that are out of place."""

    def __init__(self, table, planned) -> None:
        self._table = table
        self._planned = planned

    async def attempt(self, task, *, epoch=2, query=QUERY) -> Report:
        return await self._table.report(self._planned, epoch, task, [10 * epoch + task], query=query)

    async def both(self) -> list[Report]:
        return [await self.attempt(0), await self.attempt(1)]


async def of_another_query(tasks):
    return 2, [await tasks.attempt(0), await tasks.attempt(1, query=OTHER)]


async def of_another_epoch(tasks):
    return 2, [await tasks.attempt(0), await tasks.attempt(1, epoch=3)]


async def twice_for_a_task(tasks):
    return 2, [await tasks.attempt(0), await tasks.attempt(0)]


async def one_report_twice(tasks):
    first, second = await tasks.both()
    return 2, [first, second, second]


async def of_a_task_that_there_is_not(tasks):
    return 2, [await tasks.attempt(0), await tasks.attempt(7)]


async def of_an_unknown_attempt(tasks):
    first, second = await tasks.both()
    unknown = replace(second.attempt, id=AttemptId(uuid.uuid4().hex))
    return 2, [first, replace(second, attempt=unknown)]


async def with_manifests_of_another_task(tasks):
    first, second = await tasks.both()
    return 2, [first, replace(second, manifests=first.manifests)]


async def with_a_manifest_twice(tasks):
    first, second = await tasks.both()
    return 2, [first, replace(second, manifests=second.manifests * 2)]


async def damaged(tasks):
    first, second = await tasks.both()
    return 2, [first, replace(second, manifests=(second.manifests[0][:-20],))]


async def late(tasks):
    return 1, [await tasks.attempt(0, epoch=1)]


async def early(tasks):
    return 3, [await tasks.attempt(0, epoch=3)]


@pytest.mark.parametrize(
    ("reports", "error"),
    [
        (of_another_query, ContradictoryState),
        (of_another_epoch, ContradictoryState),
        (twice_for_a_task, ContradictoryState),
        (one_report_twice, ContradictoryState),
        (of_a_task_that_there_is_not, ContradictoryState),
        (of_an_unknown_attempt, CorruptState),
        (with_manifests_of_another_task, CorruptState),
        (with_a_manifest_twice, CorruptState),
        (damaged, CorruptState),
        (late, ContradictoryState),
        (early, ContradictoryState),
    ],
)
def test_a_report_out_of_place_changes_nothing_and_the_right_ones_are_sealed(table, reports, error):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [0])
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
        tasks = Tasks(table, planned)
        await table.seal_only(committer, 1, [await tasks.attempt(0, epoch=1)])
        number, refused = await reports(tasks)
        before = await everything(table), committer.pending, committer._queries.progress[QUERY]
        with pytest.raises(error):
            await table.seal_only(committer, number, refused)
        assert (await everything(table), committer.pending, committer._queries.progress[QUERY]) == before
        let_go(committer)
        winners = await tasks.both()
        await table.commit(committer, 2, winners)
        assert await table.ids() == [0, 10, 20, 21]
        added = [action["add"]["path"] for _, action in await table.actions() if "add" in action]
        assert [path.rpartition("/")[2] for path in added[2:]] == [
            layout.data_file_name(winner.attempt, 0) for winner in winners
        ]

    asyncio.run(scenario())


@pytest.mark.delta_log
def test_reports_of_two_queries_are_of_no_epoch(table):
    async def scenario():
        planned = await table.committer().plan(SCHEMA, SETTINGS)
        reports = [
            await table.report(planned, 0, task, [task], query=query) for task, query in enumerate((QUERY, OTHER))
        ]
        before = await everything(table)
        committers = Committers(open_at=lambda *_, **__: table.flaky)

        async def hand_in(*given):
            options = {"path": table.location}
            encoded = tuple(encode_report(each) for each in given)
            await committers.answer(Request(Verb.COMMIT_EPOCH, options, SCHEMA, True, reports=encoded), Facts())

        with pytest.raises(ContradictoryState, match="2 reports of 2 queries: nothing was sealed"):
            await hand_in(*reports)
        assert await everything(table) == before
        await hand_in(reports[0], await table.report(planned, 0, 1, [2]))
        assert await table.ids() == [0, 2]

    asyncio.run(scenario())


async def everything(table) -> dict[str, bytes]:
    """All that is in the store, with its content."""
    paths = [info.path async for page in table.store.list("") for info in page]
    return {path: (await table.store.get(path)).body for path in paths}
