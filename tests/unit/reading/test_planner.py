"""The planner of a stream: what batches read, what is asked for again, and what a restart makes of it."""

from __future__ import annotations

import pytest

from lakecommit.errors import ContradictoryState, CorruptState, LeaseLost, SchemaMismatch
from lakecommit.reading.planning.limits import Limits
from lakecommit.reading.planning.offsets import BEGIN, Phase, decode
from tests.unit.reading.tables import MOST_BEGINNINGS, Change, State, Stream, Table, file, ids, mapped, schema_of


def a_table(files: int = 5) -> Table:
    table = Table()
    table.commit(*(file(f"s{number}", at_ms=number) for number in range(files)))
    return table


async def test_a_snapshot_comes_in_its_order_then_a_batch_without_rows_then_the_log() -> None:
    stream = Stream(a_table())
    assert await stream.all() == [["s0", "s1"], ["s2", "s3"], ["s4"], []]
    assert stream.last_offset.phase is Phase.LOG and stream.last_offset.version == 1
    stream.table.commit(file("l0"), file("l1"))
    stream.table.commit(file("m0"))
    assert await stream.all() == [["l0", "l1"], ["m0"]]
    assert [stream.offsets[n]["version"] for n in range(1, 7)] == [-1, -1, -1, 1, 2, 3]


async def test_the_lease_is_taken_before_anything_is_planned_and_of_the_version_that_is() -> None:
    stream = Stream(a_table())
    stream.leases.meanwhile = lambda: stream.table.asked.append("lease")
    await stream.plan()
    assert stream.table.asked == ["at None", "lease", "at 1", "live 1"]
    assert stream.leases.taken == [(1, None)]
    assert stream.last_offset.lease == stream.leases.held[0].id


async def test_a_new_version_while_the_lease_is_taken_is_not_part_of_the_plan() -> None:
    stream = Stream(a_table(1))

    def committed() -> None:
        stream.table.commit(file("later"))

    stream.leases.meanwhile = committed
    assert await stream.all() == [["s0"], [], ["later"]]
    assert stream.leases.taken == [(1, None)]


async def test_a_stream_that_has_planned_nothing_takes_a_newer_version_where_a_vacuum_was_faster() -> None:
    stream = Stream(a_table(1))

    def vacuumed() -> None:
        if len(stream.leases.taken) == 1:
            stream.table.commit(file("better"), removes=["s0"], data_change=False)
            stream.leases.cut = 2

    stream.leases.meanwhile = vacuumed
    assert await stream.all() == [["better"], []]
    assert [version for version, _ in stream.leases.taken] == [1, 2]


async def test_it_gives_up_after_ten_of_them() -> None:
    stream = Stream(a_table(1))

    def vacuumed() -> None:
        last = len(stream.leases.taken)
        stream.table.commit(file(f"n{last}"), removes=["s0" if last == 1 else f"n{last - 1}"])
        stream.leases.cut = last + 1

    stream.leases.meanwhile = vacuumed
    with pytest.raises(LeaseLost):
        await stream.plan()
    assert len(stream.leases.taken) == MOST_BEGINNINGS


async def test_the_plan_is_released_by_the_acknowledgement_of_its_last_split(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "lakecommit.reading")
    stream = Stream(a_table(3))
    await stream.batch()
    await stream.batch()
    figures = stream.planner.figures
    assert (figures.splits, figures.released) == (3, 0)
    # The acknowledgement of the last splits comes with the batch after them.
    await stream.plan()
    figures = stream.planner.figures
    assert (figures.splits, figures.released) == (0, 1)
    await stream.run()
    for number in (2, 3, 2, 0):
        stream.planner.commit(decode(stream.offsets[number]))
    assert stream.planner.figures.released == 1
    assert [record.message.split(":")[0] for record in caplog.records] == ["planned", "released"]


async def test_a_batch_that_is_asked_for_again_has_the_same_splits_and_releases_nothing() -> None:
    stream = Stream(a_table())
    await stream.batch()
    for _ in range(9):
        assert ids(await stream.planner.partitions(BEGIN, stream.last)) == ["s0", "s1"]
    assert (stream.planner.figures.splits, stream.planner.figures.released) == (5, 0)


async def test_a_restart_goes_on_with_its_lease_and_its_plan_though_the_table_has_moved_on() -> None:
    stream = Stream(a_table())
    await stream.batch()
    await stream.plan()
    stream.table.commit(file("s00", at_ms=0), removes=["s2"], data_change=False)
    # What the user asks for now does not change the plan.
    stream.split_bytes = 3
    stream.restart()
    assert await stream.run() == ["s2", "s3"]
    assert await stream.all() == [["s4"], [], []]
    lease = stream.leases.held[0].id
    assert stream.leases.taken == [(1, None), (1, lease)]
    assert {offset["lease"] for offset in stream.offsets[1:]} == {lease}


async def test_batch_0_repeated_by_another_process_has_the_same_splits() -> None:
    stream = Stream(a_table())
    await stream.plan()
    stream.table.commit(file("later"))
    stream.restart()
    assert await stream.run() == ["s0", "s1"]
    assert [version for version, _ in stream.leases.taken] == [1, 1]


async def test_a_released_plan_is_not_built_again() -> None:
    stream = Stream(a_table(2))
    await stream.batch()
    await stream.plan()
    assert stream.last_offset.phase is Phase.LOG
    stream.restart()
    stream.table.asked.clear()
    assert await stream.run() == []
    stream.table.commit(file("l0"))
    assert await stream.all() == [["l0"]]
    stream.restart()
    assert await stream.all() == []
    assert not any(asked.startswith("live") for asked in stream.table.asked)


async def test_a_checkpoint_that_is_rewound_while_it_runs_is_noticed() -> None:
    stream = Stream(a_table(2))
    await stream.all()
    with pytest.raises(ContradictoryState, match="snapshot of version 1 again"):
        await stream.planner.partitions(BEGIN, decode(stream.offsets[1]))


async def test_a_plan_that_comes_out_differently_is_refused() -> None:
    stream = Stream(a_table())
    await stream.batch()
    stream.table.versions[1].added = stream.table.versions[1].added[:-1]
    stream.restart()
    with pytest.raises(CorruptState, match=r"had 5 splits .* has 4"):
        await stream.plan()


async def test_the_same_plan_serves_another_filter() -> None:
    stream = Stream(a_table())
    await stream.batch()
    stream.keep = lambda plan: lambda page: [each for each in page if each.path != "s3"]
    stream.restart()
    assert await stream.all() == [["s2", "s4"], []]


async def test_large_files_are_read_in_parts_and_limits_count_them() -> None:
    table = Table()
    table.commit(file("big", 250), file("small", 10, at_ms=1))
    assert await Stream(table).all() == [["big", "big@100"], ["big@200", "small"], []]
    by_bytes = Stream(table, limits=Limits(size_bytes=150))
    assert await by_bytes.all() == [["big"], ["big@100", "big@200"], ["small"], []]


async def test_a_version_is_cut_in_the_middle_and_a_restart_goes_on_there() -> None:
    stream = Stream(a_table(1))
    await stream.all()
    stream.table.commit(*(file(f"l{number}") for number in range(5)))
    stream.table.commit(file("m0"))
    stream.clock.boot += 1000
    assert await stream.batch() == ["l0", "l1"]
    assert (stream.last_offset.version, stream.last_offset.at.version) == (1, 2)
    await stream.plan()
    stream.restart()
    assert await stream.run() == ["l2", "l3"]
    stream.restart()
    assert await stream.all() == [["l4", "m0"]]


async def test_the_lease_moves_on_with_what_is_acknowledged() -> None:
    stream = Stream(a_table(1))
    await stream.all()
    stream.table.commit(file("l0"))
    await stream.all()
    assert stream.leases.held[0].moved_to is None
    stream.table.commit(file("m0"))
    await stream.all()
    assert stream.leases.held[0].moved_to == 2
    stream.restart()
    await stream.plan()
    assert stream.leases.taken[-1] == (3, stream.leases.held[0].id)


async def test_everything_at_once_where_spark_asks_for_it() -> None:
    stream = Stream(a_table())
    assert await stream.batch(unlimited=True) == ["s0", "s1", "s2", "s3", "s4"]
    stream.table.commit(file("l0"))
    stream.restart()
    assert await stream.batch(unlimited=True) == ["l0"]
    assert stream.last_offset.version == 2


async def test_a_pinned_stream_reads_nothing_newer() -> None:
    stream = Stream(a_table(1))
    await stream.planner.pin()
    stream.table.commit(file("later"))
    assert await stream.all() == [["s0"], []]
    assert stream.planner.newest == 1
    stream.restart()
    assert await stream.all() == [["later"]]


async def test_an_empty_table_has_an_empty_snapshot() -> None:
    stream = Stream()
    assert await stream.all() == [[]]
    stream.table.commit(file("l0"))
    stream.restart()
    assert await stream.run() == []
    assert await stream.all() == [["l0"]]


async def test_an_idle_store_is_asked_once_a_second() -> None:
    stream = Stream(a_table(1))
    await stream.all()
    stream.table.asked.clear()
    for _ in range(100):
        stream.clock.boot += 100
        assert await stream.batch() is None
    assert len(stream.table.asked) == 10


async def test_a_lost_lease_fails_what_is_asked_for_and_lets_go_of_the_plan() -> None:
    stream = Stream(a_table())
    await stream.batch()
    await stream.batch()
    stream.table.commit(removes=["s0"])
    stream.leases.cut = 2
    # It is read and acknowledged, so that nobody wants it.
    await stream.planner.latest(stream.last)
    stream.table.commit(removes=["s4"])
    stream.leases.cut = 3
    for _ in range(2):
        with pytest.raises(LeaseLost, match="s4, which version 3 removed"):
            await stream.plan()
    assert stream.planner.figures.released == 0


async def test_a_restart_in_the_snapshot_wants_only_what_is_left_of_it() -> None:
    stream = Stream(a_table())
    await stream.batch()
    stream.table.commit(removes=["s1"])
    stream.leases.cut = 2
    stream.restart()
    assert await stream.batch() == ["s2", "s3"]
    stream.table.commit(removes=["s4"])
    stream.leases.cut = 3
    stream.restart()
    with pytest.raises(LeaseLost, match="s4, which version 3 removed"):
        await stream.plan()


async def test_a_cut_that_took_nothing_wanted_lets_a_restart_go_on() -> None:
    stream = Stream(a_table(1))
    await stream.all()
    stream.table.commit(file("c0"), removes=["s0"], data_change=False)
    stream.table.commit(file("l0"))
    stream.leases.cut = 3
    stream.restart()
    assert await stream.all() == [["l0"]]


async def test_a_restart_is_refused_where_what_it_would_read_next_was_cut() -> None:
    stream = Stream(a_table(1))
    await stream.all()
    stream.table.commit(file("l0"))
    stream.table.commit(file("c0"), removes=["l0"], data_change=False)
    stream.leases.cut = 3
    stream.restart()
    with pytest.raises(LeaseLost, match="l0, which version 3 removed"):
        await stream.plan()


async def test_a_stop_releases_nothing() -> None:
    stream = Stream(a_table())
    await stream.batch()
    stream.planner.stop()
    stream.planner.stop()
    assert stream.leases.held[0].stopped
    assert stream.planner.figures.released == 0


async def test_what_followed_an_empty_snapshot_at_once_is_read_again_by_another_process() -> None:
    stream = Stream()

    def committed() -> None:
        if len(stream.table.versions) == 1:
            stream.table.commit(file("l0"))

    stream.leases.meanwhile = committed
    assert await stream.plan(unlimited=True)
    assert stream.last_offset.version == 1
    stream.restart()
    assert await stream.run() == ["l0"]


async def test_how_far_the_table_is_stays_known_while_a_stream_catches_up() -> None:
    stream = Stream(a_table(1))
    await stream.all()
    for number in range(9):
        stream.table.commit(file(f"l{number}"))
    stream.restart()
    await stream.plan()
    assert (stream.last_offset.version, stream.planner.newest) == (3, 10)
    await stream.run()
    for number in range(9):
        stream.table.commit(file(f"m{number}"))
    for _ in range(4):
        await stream.batch()
    assert (stream.last_offset.version, stream.planner.newest) == (11, 19)


@pytest.mark.parametrize("chosen", [False, True])
async def test_a_restart_in_the_snapshot_never_reads_a_column_as_nulls_that_was_renamed_since(chosen: bool) -> None:
    table = Table(versions=[Change(0, State(0, schema=mapped(id="c1")))])
    table.commit(*(file(f"s{number}") for number in range(5)))
    stream = Stream(table, chosen=chosen)
    await stream.batch()
    table.commit(schema=mapped(key="c1"))
    stream.schema = schema_of("key")
    stream.restart()
    with pytest.raises(SchemaMismatch, match="column id"):
        await stream.plan()
    # With the name that it had then it goes on.
    stream.schema = schema_of("id")
    stream.restart()
    assert await stream.batch() == ["s2", "s3"]
