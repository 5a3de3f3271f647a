"""What a stream makes of later versions: where it starts, what it passes over, and before what it stops."""

from __future__ import annotations

import pytest

from lakecommit.errors import CorruptState, InvalidInput, LeaseLost, SchemaMismatch, TableMadeAnew, VersionsGone
from lakecommit.formats.reading import ReadPlan
from lakecommit.reading.planning import log_walk
from lakecommit.reading.planning.judging import Removes
from lakecommit.reading.planning.limits import Limits
from lakecommit.reading.planning.plan import Keep, every_file
from lakecommit.reading.planning.starting import LATEST, Start
from tests.unit.reading.tables import Change, State, Stream, Table, file, mapped, schema_of
from tests.unit.reading.test_planner import a_table


@pytest.mark.parametrize(
    "start, expected",
    [
        (Start(version=0), [["s0"], ["l0"]]),
        (Start(version=1), [["s0"], ["l0"]]),
        (Start(version=2), [["l0"]]),
        (Start(version=3), [[]]),
        (Start(version=LATEST), [[]]),
        (Start(time_ms=2000), [["l0"]]),
        (Start(time_ms=1), [["s0"], ["l0"]]),
        (Start(time_ms=0), [["s0"], ["l0"]]),
    ],
)
async def test_it_starts_where_it_is_asked_to(start: Start, expected: list[list[str]]) -> None:
    table = a_table(1)
    table.commit(file("l0"))
    stream = Stream(table, start=start, limits=Limits(files=1))
    assert await stream.all() == expected
    first = stream.offsets[1]
    assert first["start"].startswith("version:") and first["phase"] == "log"
    # Where it starts is known from then on, whatever is committed.
    table.commit(file("m0"))
    stream.restart()
    assert await stream.all() == [["m0"]]


async def test_version_0_is_read_once_also_without_rows() -> None:
    table = Table()
    table.versions[0].added = [(file("z0"), True)]
    stream = Stream(table, start=Start(version=0))
    assert await stream.all() == [["z0"]]
    assert await stream.all() == []
    assert await Stream(start=Start(version=0)).all() == [[]]


@pytest.mark.parametrize("first", [0, 1])
async def test_batch_0_of_a_start_at_a_version_repeats(first: int) -> None:
    stream = Stream(a_table(3), start=Start(version=first))
    await stream.plan()
    stream.restart()
    assert await stream.run() == ["s0", "s1"]
    assert await stream.all() == [["s2"]]


@pytest.mark.parametrize("start", [Start(version=4), Start(time_ms=2001)])
async def test_a_start_that_is_not_there_yet_is_refused(start: Start) -> None:
    table = a_table(1)
    table.commit(file("l0"))
    with pytest.raises(InvalidInput, match="newest"):
        await Stream(table, start=start).plan()


@pytest.mark.parametrize("start", [Start(), Start(version=0), Start(version=LATEST), Start(time_ms=0)])
async def test_a_table_without_a_version_is_refused_in_words(start: Start) -> None:
    """A Parquet directory is one between its creation and its first epoch."""
    stream = Stream(Table(versions=[Change(-1, State(-1))]), start=start)
    with pytest.raises(InvalidInput, match="nothing is committed"):
        await stream.plan()
    assert stream.leases.taken == []


async def test_what_only_moved_rows_passes_silently() -> None:
    stream = Stream(a_table(1))
    await stream.all()
    stream.table.commit(file("compacted"), removes=["s0"], data_change=False)
    assert await stream.all() == [[]]
    assert stream.last_offset.version == 2


@pytest.mark.parametrize(
    "removes, deleted, changed",
    [
        (Removes(), "ignoreDeletes", "skipChangeCommits"),
        (Removes(ignore_deletes=True), ["l0"], "skipChangeCommits"),
        (Removes(ignore_changes=True), ["l0"], ["l0", "new"]),
        (Removes(skip_changes=True), ["l0"], ["l0"]),
    ],
)
async def test_rows_that_go_are_refused_or_passed_over_as_asked(
    removes: Removes, deleted: object, changed: object
) -> None:
    for adds, expected in ([], deleted), ([file("new", at_ms=9)], changed):
        stream = Stream(a_table(1), removes=removes, limits=Limits())
        await stream.all()
        stream.table.commit(file("l0"))
        stream.table.commit(*adds, removes=["s0"])
        stream.restart()
        await stream.batch()
        assert stream.read[1:2] == ["l0"]
        if isinstance(expected, str):
            assert stream.last_offset.version == 2
            with pytest.raises(InvalidInput, match=expected):
                await stream.batch()
        else:
            assert stream.read[1:] == expected


async def test_a_schema_that_grows_stops_the_query_before_that_version() -> None:
    stream = Stream(a_table(1), limits=Limits())
    await stream.all()
    stream.table.commit(file("l0"))
    stream.table.commit(file("m0"), schema=schema_of("id", "more"))
    stream.restart()
    assert await stream.batch() == ["l0"]
    with pytest.raises(SchemaMismatch, match=r"at version 3.*column more"):
        await stream.batch()
    stream.schema = schema_of("id", "more")
    stream.restart()
    assert await stream.all() == [["m0"]]


@pytest.mark.parametrize("before, after", [("id", "key"), ("key", "id")])
async def test_a_column_that_was_chosen_and_has_another_name_now_is_never_read_as_nulls(
    before: str, after: str
) -> None:
    """Its name before is the query's where it is renamed while that runs, else its name after."""
    table = Table(versions=[Change(0, State(0, schema=mapped(**{before: "c1", "other": "c2"})))])
    stream = Stream(table, chosen=True, start=Start(version=0), limits=Limits())
    table.commit(file("l0"))
    if before == "id":
        assert await stream.all() == [["l0"]]
    table.commit(file("m0"), schema=mapped(**{after: "c1", "other": "c2", "more": "c3"}))
    stream.clock.boot += 1000
    for _ in range(2):
        with pytest.raises(SchemaMismatch, match="column key is id in the query's schema"):
            await stream.plan()
        # As a query that is started again without another load().
        stream.restart()


@pytest.mark.parametrize("start", [Start(), Start(version=LATEST)])
async def test_a_column_that_was_chosen_and_is_not_there_is_refused_where_a_stream_begins(start: Start) -> None:
    stream = Stream(a_table(1), chosen=True, schema=schema_of("id", "idd"), start=start)
    with pytest.raises(SchemaMismatch, match="idd is not in the table"):
        await stream.plan()
    assert stream.leases.taken == []


async def test_a_column_that_came_later_is_null_before_that() -> None:
    table = Table(versions=[Change(0, State(0, schema=mapped(other="c2")))])
    table.commit(file("l0"))
    table.commit(file("m0"), schema=mapped(other="c2", id="c1"))
    assert await Stream(table, chosen=True, start=Start(version=0)).all() == [["l0", "m0"]]


async def test_another_table_in_its_place_is_refused() -> None:
    stream = Stream(a_table(1))
    await stream.all()
    stream.table.commit(file("l0"), table_id="table-2")
    for _ in range(2):
        with pytest.raises(TableMadeAnew, match="table-1 and is table-2"):
            await stream.all()
        stream.restart()
    assert len(stream.leases.taken) == 1


async def test_versions_that_are_gone_stop_it_unless_their_rows_may_be_lost() -> None:
    stream = Stream(a_table(1))
    await stream.all()
    for name in ("l0", "m0", "n0", "o0"):
        stream.table.commit(file(name))
    stream.table.gone_before = 4
    with pytest.raises(VersionsGone):
        await stream.all()
    stream.fail_on_data_loss = False
    stream.restart()
    assert await stream.all() == [[], ["o0"]]
    assert [offset["version"] for offset in stream.offsets[-2:]] == [4, 5]


async def test_a_version_of_many_files_is_sorted_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_walk, "FEW", 3)
    stream = Stream(a_table(1), limits=Limits(files=4))
    await stream.all()
    stream.table.commit(*(file(f"l{number}", at_ms=9 - number) for number in range(10)))
    assert await stream.all() == [["l9", "l8", "l7", "l6"], ["l5", "l4", "l3", "l2"], ["l1", "l0"]]


@pytest.mark.parametrize("few", [3, 4096])
async def test_a_version_that_takes_many_batches_is_read_once(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(log_walk, "FEW", few)
    stream = Stream(a_table(1), limits=Limits(files=1))
    await stream.all()
    stream.table.commit(*(file(f"l{number}") for number in range(10)))
    stream.table.commit(file("m0"))
    stream.table.asked.clear()
    read = await stream.all()
    assert read == [[f"l{number}"] for number in range(10)] + [["m0"]]
    # The last batch of it looks at what comes next.
    assert stream.table.asked.count("changes 1") == 1
    assert len([asked for asked in stream.table.asked if asked.startswith("changes")]) <= 4


async def test_version_0_is_listed_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_walk, "FEW", 3)
    table = Table()
    table.versions[0].added = [(file(f"z{number}"), True) for number in range(8)]
    stream = Stream(table, start=Start(version=0), limits=Limits(files=3))
    assert await stream.batch() == ["z0", "z1", "z2"]
    stream.restart()
    assert await stream.all() == [["z3", "z4", "z5"], ["z6", "z7"]]
    assert table.asked.count("live 0") == 2


async def a_batch_of_two_that_is_logged(**options: object) -> Stream:
    stream = Stream(a_table(1), limits=Limits(), **options)  # type: ignore[arg-type]
    await stream.all()
    stream.table.commit(file("l0"))
    stream.table.commit(file("m0"), removes=["s0"] if options else [])
    stream.clock.boot += 1000
    await stream.plan()
    assert stream.last_offset.version == 3
    return stream


async def test_a_batch_that_is_planned_again_never_ends_short_where_what_was_passed_over_is_refused_now() -> None:
    stream = await a_batch_of_two_that_is_logged(removes=Removes(ignore_changes=True))
    stream.removes = Removes()
    stream.restart()
    with pytest.raises(InvalidInput, match="version 3"):
        await stream.run()
    stream.removes = Removes(ignore_changes=True)
    stream.restart()
    assert await stream.run() == ["l0", "m0"]


async def test_a_batch_that_is_planned_again_never_ends_short_where_the_log_does() -> None:
    stream = await a_batch_of_two_that_is_logged()
    last = stream.table.versions.pop()
    stream.restart()
    with pytest.raises(CorruptState, match="no longer leads to version 3"):
        await stream.run()
    stream.table.versions.append(last)
    assert await stream.run() == ["l0", "m0"]


@pytest.mark.parametrize("start", [Start(version=2), Start(time_ms=2000), Start(version=LATEST)])
async def test_a_start_at_a_version_does_not_want_what_was_removed_of_those_before(start: Start) -> None:
    stream = Stream(a_table(1), start=start)
    stream.table.commit(file("c0"), removes=["s0"], data_change=False)
    stream.leases.cut = 2
    if start.version == LATEST:
        stream.leases.meanwhile = lambda: stream.table.commit(file("c1"), removes=["c0"], data_change=False)
        stream.leases.cut = 3
    await stream.plan()
    assert len(stream.leases.taken) == 1


@pytest.mark.parametrize("first", [0, 1])
async def test_a_start_at_a_version_wants_what_that_one_added(first: int) -> None:
    stream = Stream(Table(versions=[Change(0, State(0), [(file("s0"), True)])]), start=Start(version=first))
    stream.table.commit(file("l0"))
    stream.table.commit(file("c0"), removes=["l0" if first else "s0"], data_change=False)
    stream.leases.cut = 2
    with pytest.raises(LeaseLost):
        await stream.plan()


async def test_what_comes_before_a_version_that_a_filter_does_not_fit_is_read_first() -> None:
    def keep(plan: ReadPlan) -> Keep:
        if "id" not in plan.schema:
            raise InvalidInput("option where names id, which is not there")
        return every_file

    stream = Stream(a_table(1), chosen=True, limits=Limits(), keep=keep)
    await stream.all()
    stream.table.commit(file("l0"))
    stream.table.commit(file("m0"), schema=schema_of("other"))
    stream.clock.boot += 1000
    assert await stream.batch() == ["l0"]
    with pytest.raises(InvalidInput, match="names id"):
        await stream.batch()


@pytest.mark.parametrize("gone_before, left", [(3, ["n0", "o0"]), (4, ["o0"]), (5, []), (6, [])])
async def test_a_batch_that_is_planned_again_lacks_no_more_than_what_is_gone(gone_before: int, left: list[str]) -> None:
    stream = Stream(a_table(1), limits=Limits(), fail_on_data_loss=False)
    await stream.all()
    for name in ("l0", "m0", "n0", "o0"):
        stream.table.commit(file(name))
    stream.clock.boot += 1000
    await stream.plan()
    stream.table.commit(file("p0"))
    stream.table.gone_before = gone_before
    stream.restart()
    assert await stream.run() == left
