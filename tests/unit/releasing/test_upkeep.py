"""Who keeps the log short, and when; that no commit waits for it, and that it never fails one."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import pytest

from lakecommit.errors import StoreError
from lakecommit.formats.upkeep import Checkpointed, LeftToOthers, LogCleaned, LogTail
from lakecommit.options.parsing import parse_options
from lakecommit.releasing.upkeep import LONGEST_TAIL_FILES, Begun, KeptUp, UpkeepFailed, is_due, keep_up
from lakecommit.service.dispatch import Committers
from tests.lake import QUERY, SCHEMA, SETTINGS, Lake
from tests.lake.on_disk import BATCH

DAY_MINUTES = 24 * 60


@pytest.mark.parametrize(
    ("version", "tail", "begun", "due"),
    [
        (100, LogTail(1, 1), None, True),
        (200, LogTail(1, 1), Begun(200, LogTail(1, 1)), True),
        (0, LogTail(1, 0), None, False),
        (101, LogTail(102, 1000), None, False),
        (301, LogTail(300, 1000), None, False),
        (301, LogTail(301, 1000), None, True),
        (50, LogTail(51, LONGEST_TAIL_FILES), None, False),
        (50, LogTail(51, LONGEST_TAIL_FILES + 1), None, True),
        # What was there when it was begun does not count, whatever became of that.
        (302, LogTail(302, 1000), Begun(301, LogTail(301, 1000)), False),
        (602, LogTail(602, 1000), Begun(301, LogTail(301, 1000)), True),
        (51, LogTail(52, LONGEST_TAIL_FILES + 10), Begun(50, LogTail(51, LONGEST_TAIL_FILES + 1)), False),
        (51, LogTail(52, 2 * LONGEST_TAIL_FILES + 2), Begun(50, LogTail(51, LONGEST_TAIL_FILES + 1)), True),
        # The state was read anew since, from a checkpoint.
        (650, LogTail(5, 10), Begun(301, LogTail(301, 1000)), False),
        (650, LogTail(5, LONGEST_TAIL_FILES + 1), Begun(301, LogTail(301, LONGEST_TAIL_FILES)), True),
    ],
)
def test_when_it_is_due(version: int, tail: LogTail, begun: Begun | None, due: bool) -> None:
    assert is_due(version, tail, 100, begun) is due


class Keeper:
    """Notes what is asked of it, and answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[bool] = []
        self.answer: object = KeptUp(Checkpointed(1, 1, 1), LogCleaned(3, 1))
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __call__(self, clean: bool):
        self.asked.append(clean)
        await self.may_answer.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def epochs(table: Lake, committer, numbers, settings=SETTINGS) -> None:
    for epoch in numbers:
        await table.epoch(committer, epoch, [epoch], settings=settings)


EVERY_THIRD = replace(SETTINGS, checkpoint_interval=3)


def test_the_committer_of_a_multiple_has_it_done(table):
    async def story():
        keeper = Keeper()
        committer = table.committer(keep_up=keeper)
        await epochs(table, committer, range(7), EVERY_THIRD)
        await committer.settle_upkeep()
        return keeper.asked

    assert asyncio.run(story()) == [True, False], "versions 3 and 6; the log is cleaned up once a day"


def test_the_log_is_cleaned_up_once_a_day(table):
    async def story():
        keeper = Keeper()
        committer = table.committer(keep_up=keeper)
        await epochs(table, committer, range(3), EVERY_THIRD)
        await committer.settle_upkeep()
        table.pass_minutes(DAY_MINUTES)
        await epochs(table, committer, range(3, 6), EVERY_THIRD)
        await committer.settle_upkeep()
        return keeper.asked

    assert asyncio.run(story()) == [True, True]


def test_a_batch_write_has_it_done_too(table):
    async def story():
        keeper = Keeper()
        committer = table.committer(keep_up=keeper)
        settings = replace(SETTINGS, checkpoint_interval=1)
        planned = await committer.plan(SCHEMA, settings, afresh=True)
        reports = [await table.report(planned, 0, 0, [1], query=BATCH)]
        await committer.commit_batch(BATCH, reports, schema=SCHEMA, settings=settings, txn=None)
        await committer.settle_upkeep()
        return keeper.asked

    assert asyncio.run(story()) == [True]


@pytest.mark.delta_log
def test_the_tables_own_interval_comes_first(table):
    async def story():
        keeper = Keeper()
        committer = table.committer(keep_up=keeper)
        settings = replace(EVERY_THIRD, properties={"delta.checkpointInterval": "2"})
        await epochs(table, committer, range(4), settings)
        await committer.settle_upkeep()
        return len(keeper.asked)

    assert asyncio.run(story()) == 2


def test_commits_go_on_beside_it_and_one_is_under_way_at_a_time(table):
    async def story():
        keeper = Keeper()
        keeper.may_answer.clear()
        committer = table.committer(keep_up=keeper)
        await epochs(table, committer, range(12), EVERY_THIRD)
        assert len(keeper.asked) == 1
        assert committer.is_needed, "the table does not go meanwhile"
        keeper.may_answer.set()
        await committer.settle_upkeep()
        return keeper.asked

    assert asyncio.run(story()) == [True, False], "what became due meanwhile is done once"


@pytest.mark.parametrize(
    "answer",
    [UpkeepFailed("its process was killed"), StoreError("no answer"), ValueError("a bug"), LeftToOthers("a feature")],
)
def test_what_goes_wrong_is_said_and_nothing_else(table, answer, caplog):
    async def story():
        keeper = Keeper()
        keeper.answer = KeptUp(answer) if isinstance(answer, LeftToOthers) else answer
        committer = table.committer(keep_up=keeper)
        await epochs(table, committer, range(7), EVERY_THIRD)
        await committer.settle_upkeep()
        assert len(keeper.asked) == 2
        return await table.ids()

    with caplog.at_level(logging.WARNING, "lakecommit.releasing"):
        assert asyncio.run(story()) == list(range(7))
    said = [record.getMessage() for record in caplog.records]
    reason = answer.reason if isinstance(answer, UpkeepFailed | LeftToOthers) else str(answer)
    assert all(reason in each for each in said)
    assert len(said) == (1 if isinstance(answer, LeftToOthers) else 2)


def test_whoever_closes_the_table_does_not_wait_for_it(table):
    async def story():
        keeper = Keeper()
        keeper.may_answer.clear()
        committer = table.committer(keep_up=keeper)
        await epochs(table, committer, range(3), EVERY_THIRD)
        await asyncio.sleep(0)
        committer.close()
        await committer.settle_upkeep()

    asyncio.run(story())


@pytest.mark.delta_log
def test_a_checkpoint_and_a_clean_up(table):
    async def story():
        committer = table.committer(keep_up=lambda clean: keep_up(table.log_cleaner(), clean=clean))
        await epochs(table, committer, range(7), EVERY_THIRD)
        await committer.settle_upkeep()
        opened = await table.format().open()
        return opened.tail, opened.marks, await table.ids()

    tail, marks, ids = asyncio.run(story())
    assert tail.versions <= 1, "of version 6, or of 7"
    assert (marks[QUERY], ids) == (6, list(range(7)))


@pytest.mark.delta_log
def test_nothing_is_cleaned_up_behind_what_is_left_to_others(table):
    async def story():
        committer = table.committer()
        settings = replace(SETTINGS, properties={"delta.checkpoint.writeStatsAsJson": "false"})
        await table.epoch(committer, 0, [1], settings=settings)
        return await keep_up(table.log_cleaner(), clean=True)

    found = asyncio.run(story())
    assert isinstance(found.checkpoint, LeftToOthers) and found.cleaned is None


@pytest.mark.parametrize(("inline", "path"), [(True, "disk"), (False, "memory")])
def test_an_inline_committer_and_a_table_in_memory_leave_it_to_others(inline, path, tmp_path):
    location = str(tmp_path) if path == "disk" else "memory://lake/table"
    committers = Committers(inline=inline)
    with committers.using(parse_options({"path": location}, streaming=False)) as served:
        assert served._upkeep is None
    with Committers().using(parse_options({"path": str(tmp_path)}, streaming=False)) as served:
        assert served._upkeep is not None
