"""Streams into a Parquet directory: what Spark reads of it, whatever happens."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from lakecommit.errors import ContradictoryState, InvalidInput
from lakecommit.formats.parquet import writing
from lakecommit.formats.parquet.names import LOG
from lakecommit.releasing.whole_table import TableCleaner
from tests.lake import ASYNCHRONOUS, OTHER, QUERY, SCHEMA, SETTINGS, hold, let_go


def run(work):
    return asyncio.run(work)


def names(log: dict) -> list[str]:
    """The numbers of the log, in order."""
    found = [name for name in log if not name.startswith(".")]
    return sorted(found, key=lambda name: int(name.removesuffix(".compact")))


def test_every_epoch_is_an_entry_that_spark_reads_at_once(table, monkeypatch):
    """Compacts in their turn, none of which takes a request but its own."""
    # However long this takes, nothing is asked again.
    monkeypatch.setattr(writing, "LOOK_AGAIN_MS", 10**9)

    async def scenario():
        committer = table.committer()
        for epoch in range(24):
            table.store.counts.clear()
            await table.epoch(committer, epoch, [epoch], [100 + epoch])
            if epoch:
                assert dict(table.store.counts) == {"create": 2, "put": 4}, epoch
            assert await table.ids() == sorted([*range(epoch + 1), *range(100, 101 + epoch)])
        expected = [f"{each}.compact" if each in (9, 19) else str(each) for each in range(24)]
        assert names(await table.log()) == expected
        assert await table.orphans() == []

    run(scenario())


def test_an_epoch_without_rows_has_an_entry_too(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [0])
        for epoch in (1, 2):
            await table.epoch(committer, epoch, [])
        await committer.drain()
        await table.epoch(committer, 3, [3])
        assert names(await table.log()) == ["0", "1", "2", "3"]
        assert (await table.log())["1"] == b"v1"
        assert await table.ids() == [0, 3]

    run(scenario())


def test_epochs_that_gather_become_entries_in_their_order(table):
    async def scenario():
        committer = table.committer()
        hold(committer)
        for epoch in range(12):
            await table.epoch(committer, epoch, [epoch], pace=ASYNCHRONOUS)
        assert names(await table.log()) == []
        let_go(committer)
        await committer.drain()
        assert len(names(await table.log())) == 12
        assert await table.ids() == list(range(12))

    run(scenario())


def test_before_the_first_epoch_readers_see_nothing(table):
    async def scenario():
        committer = table.committer()
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
        await table.report(planned, 0, 0, [1])
        assert (await table.record())["owner"] is None
        assert await table.files() == []

    run(scenario())


def test_a_restart_goes_on_with_what_is_sealed(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        dead = table.committer()
        hold(dead)
        for epoch in range(1, 15):
            await table.epoch(dead, epoch, [epoch], pace=ASYNCHRONOUS)
        committer = table.committer()
        await table.epoch(committer, 15, [15])
        assert await table.ids() == list(range(16))
        assert names(await table.log())[9] == "9.compact"

    run(scenario())


def test_two_drivers_put_the_same_entry(table):
    async def scenario():
        first, second = table.committer(), table.committer()
        await table.epoch(first, 0, [0])
        hold(second)
        await table.epoch(second, 1, [1], pace=ASYNCHRONOUS)
        # Another driver of the query restarts, and commits what the second has sealed.
        third = table.committer()
        await table.epoch(third, 2, [2])
        let_go(second)
        await second.drain()
        assert await table.ids() == [0, 1, 2]
        assert names(await table.log()) == ["0", "1", "2"]

    run(scenario())


def test_a_lost_answer_is_found_out_about(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [0])
        table.flaky.lose_response_of.add(f"{LOG}/1")
        await table.epoch(committer, 1, [1])
        table.flaky.lose_response_of.add(f"{LOG}/9.compact")
        for epoch in range(2, 12):
            await table.epoch(committer, epoch, [epoch])
        assert await table.ids() == list(range(12))

    run(scenario())


def test_a_directory_belongs_to_one_query(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [0])
        with pytest.raises(InvalidInput, match=rf"belongs to query {QUERY}, and query {OTHER} cannot write there"):
            await table.epoch(table.committer(), 0, [1], query=OTHER)
        assert (await table.committer().plan(SCHEMA, SETTINGS)).plan.owner == QUERY
        assert (await table.record())["owner"] == QUERY
        assert await table.ids() == [0]

    run(scenario())


def test_the_log_of_spark_is_gone_on_with_and_back(table):
    """Four changes between the two sinks over 33 epochs, compacts by both."""

    async def scenario():
        epoch = 0
        for sink in ("spark", "ours", "spark", "ours", "spark"):
            committer = table.committer()
            for _ in range(7):
                if sink == "spark":
                    await table.sparks_sink(epoch, [epoch])
                else:
                    await table.epoch(committer, epoch, [epoch])
                epoch += 1
            assert await table.ids() == list(range(epoch)), sink
        assert (await table.record())["interval"] == 10

    run(scenario())


def test_an_adopted_log_goes_on_with_its_newest_number_or_the_next(table):
    async def scenario():
        for epoch in range(3):
            await table.sparks_sink(epoch, [epoch])
        with pytest.raises(ContradictoryState, match="runs epoch 7 without epoch 3"):
            await table.epoch(table.committer(), 7, [7])
        # The newest may be repeated: its entry holds.
        await table.epoch(table.committer(), 2, [2])
        await table.epoch(table.committer(), 3, [3])
        assert await table.ids() == [0, 1, 2, 3]

    run(scenario())


def test_what_spark_went_past_is_filled_when_the_query_starts(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        dead = table.committer()
        hold(dead)
        for epoch in (1, 2, 3):
            await table.epoch(dead, epoch, [epoch] if epoch != 2 else [], pace=ASYNCHRONOUS)
        for epoch in (4, 5):
            await table.sparks_sink(epoch, [epoch])
        await table.epoch(table.committer(), 6, [6])
        assert await table.ids() == [0, 1, 3, 4, 5, 6]
        assert names(await table.log()) == [str(each) for each in range(7)]

    run(scenario())


def test_an_epoch_that_spark_has_repeated_is_not_there_twice(table):
    """Its entry holds, and the sealed files go, once nobody needs their state any more."""

    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        dead = table.committer()
        hold(dead)
        for epoch in (1, 2):
            await table.epoch(dead, epoch, [epoch], pace=ASYNCHRONOUS)
        await table.sparks_sink(2, [2])
        committer = table.committer()
        for epoch in (3, 4):
            await table.epoch(committer, epoch, [epoch])
        assert await table.ids() == [0, 1, 2, 3, 4]
        assert len(await table.orphans()) == 1
        for _ in range(4):
            table.pass_minutes(25)
            await committer.tidy()
        assert await table.orphans() == []
        assert await table.ids() == [0, 1, 2, 3, 4]

    run(scenario())


def test_an_entry_of_another_sink_stops_the_query(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [0])
        await table.sparks_sink(1, [1])
        with pytest.raises(ContradictoryState, match=r"_spark_metadata/1 holds other files.*start the query again"):
            await table.epoch(committer, 1, [1])
        await table.epoch(table.committer(), 2, [2])
        assert await table.ids() == [0, 1, 2]

    run(scenario())


def test_a_hole_that_has_no_seal_is_said(table):
    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        await table.sparks_sink(2, [2])
        with pytest.raises(ContradictoryState, match=r"has no entry 1.*has no seal of that epoch"):
            await table.epoch(table.committer(), 3, [3])

    run(scenario())


def test_losers_go_and_state_is_released(table):
    async def scenario():
        committer = table.committer()
        for epoch in range(4):
            planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
            loser = await table.report(planned, epoch, 0, [epoch])
            winner = await table.report(planned, epoch, 0, [epoch])
            assert loser != winner
            await table.commit(committer, epoch, [winner])
        await committer.tidy()
        assert await table.orphans() == []
        for _ in range(3):
            table.pass_minutes(25)
            await committer.tidy()
        assert await table.ids() == [0, 1, 2, 3]
        assert [each for each in await table.state() if each.startswith("seals/")] == [f"seals/{3:020d}.avro"]

    run(scenario())


def test_state_of_an_earlier_process_is_released_too(table):
    async def scenario():
        committer = table.committer()
        for epoch in range(22):
            await table.epoch(committer, epoch, [epoch])
        table.pass_minutes(60)
        await table.format().clean_log()
        later = table.committer()
        await table.epoch(later, 22, [22])
        for _ in range(3):
            table.pass_minutes(25)
            await later.tidy()
        assert [each for each in await table.state() if each.startswith("seals/")] == [f"seals/{22:020d}.avro"]
        assert await table.ids() == list(range(23))

    run(scenario())


def test_a_log_that_is_cleaned_up_reads_and_goes_on(table):
    async def scenario():
        committer = table.committer()
        for epoch in range(45):
            await table.epoch(committer, epoch, [epoch])
        assert (await table.format().clean_log()).deleted == 0, "all of it is young"
        table.pass_minutes(60)
        await table.epoch(committer, 45, [45])
        cleaned = await table.format().clean_log()
        assert (cleaned.boundary, cleaned.deleted) == (29, 29)
        assert names(await table.log())[:3] == ["29.compact", "30", "31"]
        for setting in (5, 10, 20):
            assert len(await table.files(setting)) == 46
        # Spark's own sink goes on, too, across its next compact.
        for epoch in range(46, 61):
            await table.sparks_sink(epoch, [epoch])
        assert await table.ids() == list(range(61))

    run(scenario())


def test_a_directory_that_was_made_anew_is_noticed(table):
    async def scenario():
        committer = table.committer()
        for epoch in range(2):
            await table.epoch(committer, epoch, [])
        await committer.drain()
        await table.store.delete([path for path in await table.paths(LOG)])
        # Entries of the same bytes, under another record.
        other = table.committer()
        for epoch in range(2):
            await table.epoch(other, epoch, [], query=OTHER)
        await other.drain()
        table.pass_minutes(1)
        with pytest.raises(ContradictoryState, match=r"was made anew: its id was .* and is "):
            await table.epoch(committer, 2, [2])
        assert await table.ids() == []

    run(scenario())


@pytest.mark.parametrize("epoch", [3, 12, 25])
def test_a_query_goes_on_in_a_directory_that_was_made_anew(table, epoch):
    """From any epoch on, if its user says so: readers find as many compacts before it as they need."""

    async def scenario():
        committer = table.committer()
        for number in range(epoch):
            await table.epoch(committer, number, [number])
        await table.store.delete([*await table.paths(), *await table.paths(LOG)])
        await table.store.delete(await table.paths("_lakecommit"))
        with pytest.raises(ContradictoryState, match=r"acceptTableId=") as refused:
            await table.epoch(table.committer(), epoch, [epoch])
        new_id = str(refused.value).partition("acceptTableId=")[2].partition(";")[0]
        settings = replace(SETTINGS, accepted_table_id=new_id)
        later = table.committer()
        for number in range(epoch, epoch + 15):
            await table.epoch(later, number, [number], settings=settings)
            assert len(await table.files()) == number - epoch + 1
        assert await table.ids() == list(range(epoch, epoch + 15))

    run(scenario())


def test_a_directory_with_files_of_others_is_refused(table):
    async def scenario():
        await table.store.put("day=1/part-0.parquet", b"theirs")
        with pytest.raises(InvalidInput, match=r"holds files that no log names, day=1/part-0\.parquet among them"):
            await table.epoch(table.committer(), 0, [0])
        await table.store.delete(["day=1/part-0.parquet"])
        await table.store.put("_delta_log/00000000000000000000.json", b"{}")
        with pytest.raises(InvalidInput, match="is a Delta table"):
            await table.epoch(table.committer(), 0, [0])
        assert await table.paths("_spark_metadata") == []

    run(scenario())


def test_a_query_can_be_cleaned_up_behind_without_its_driver(table):
    async def scenario():
        committer = table.committer()
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch])
        table.pass_minutes(60)
        cleaner = TableCleaner(table.flaky, table.format(), clock=table.clock, new_id=table.new_id)
        async for found in cleaner.survey():
            assert found.problem is None
            await cleaner.apply(found)
        assert await table.ids() == [0, 1, 2]
        await table.epoch(table.committer(), 3, [3])
        assert await table.ids() == [0, 1, 2, 3]

    run(scenario())


def test_what_spark_has_repeated_goes_also_after_its_entry_was_cleaned_up(table):
    """Nothing but the names in the log tells then whose rows are there."""

    async def scenario():
        await table.epoch(table.committer(), 0, [0])
        dead = table.committer()
        hold(dead)
        await table.epoch(dead, 1, [1], pace=ASYNCHRONOUS)
        await table.sparks_sink(1, [1])
        for epoch in range(2, 41):
            await table.sparks_sink(epoch, [epoch])
        table.pass_minutes(60)
        assert (await table.format().clean_log()).boundary == 29
        assert len(await table.orphans()) == 1
        committer = table.committer()
        for epoch in (41, 42):
            await table.epoch(committer, epoch, [epoch])
        for _ in range(4):
            table.pass_minutes(25)
            await committer.tidy()
        assert await table.orphans() == []
        assert await table.ids() == list(range(43))
        assert [each for each in await table.state() if each.startswith("seals/")] == [f"seals/{42:020d}.avro"]

    run(scenario())
