"""Event times: which column holds them, and how far a query has come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakecommit.errors import InvalidInput
from lakecommit.model import DataFile
from lakecommit.schema import Array, DataType, Field, Primitive, Struct
from lakecommit.watermark import advance, check_event_time_column, epoch_watermark

moments = st.integers(-(2**63), 2**63 - 1)
Times = list[list[int | None]]
times_by_task = st.lists(st.lists(st.none() | moments, max_size=4), max_size=5)


def column(name: str, data_type: str | DataType) -> Field:
    return Field(name, Primitive(data_type) if isinstance(data_type, str) else data_type, True)


FIELDS = (
    column("id", "long"),
    column("created", "timestamp"),
    column("Local", "timestamp_ntz"),
    column("day", "date"),
    column("text", "string"),
    column("order", Struct((column("at", "timestamp"),))),
    column("visits", Array(Primitive("timestamp"), True)),
)


def file(newest_us: int | None) -> DataFile:
    return DataFile("f", {}, 1, 1, "{}", 0, newest_us, newest_us)


def watermark(times: Times, delay_us: int = 0) -> int | None:
    return epoch_watermark(((file(time) for time in task) for task in times), delay_us)


def refusal(name: str, fields: tuple[Field, ...] = FIELDS) -> str:
    with pytest.raises(InvalidInput) as caught:
        check_event_time_column(fields, name)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "found"), [("created", "created"), ("Local", "Local"), ("day", "day"), ("LOCAL", "Local"), ("Day", "day")]
)
def test_a_column_of_event_times_is_found_in_any_case(name: str, found: str) -> None:
    assert check_event_time_column(FIELDS, name).name == found


def test_a_dot_may_be_part_of_a_columns_name() -> None:
    assert check_event_time_column((column("a.b", "date"),), "a.b").name == "a.b"


@pytest.mark.parametrize(("name", "meant"), [("create", "created"), ("locl", "Local"), ("days", "day")])
def test_an_unknown_column_is_refused_with_the_nearest_name(name: str, meant: str) -> None:
    assert refusal(name) == (
        f"option eventTimeColumn is {name}, but the data has no such column; did you mean {meant}?"
    )


def test_a_column_like_no_other_is_refused_with_all_that_will_do() -> None:
    assert refusal("zzz").endswith("the data has no such column; name one of created, Local, day")


@pytest.mark.parametrize(("name", "shown"), [("id", "bigint"), ("text", "string"), ("visits", "array<timestamp>")])
def test_a_column_of_another_type_is_refused(name: str, shown: str) -> None:
    assert refusal(name) == (
        f"option eventTimeColumn is {name}, a column of type {shown}, but event times have to be timestamp, "
        "timestamp_ntz or date; cast it, or name one of created, Local, day"
    )


def test_a_field_inside_of_a_column_is_refused() -> None:
    assert "a field inside of column order; select it as a column of its own" in refusal("order.at")


def test_data_without_any_event_time_are_refused() -> None:
    assert refusal("ts", FIELDS[:1]).endswith("leave the option out: no column of the data will do")
    assert refusal("ts", ()).endswith("leave the option out: no column of the data will do")


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([], None),
        ([[]], None),
        ([[None], [None, None]], None),
        ([[5]], 5),
        ([[5, 9, 7]], 9),
        ([[5, 9], [6, 2]], 6),
        ([[5, 9], []], 9),
        ([[5, 9], [None]], 9),
        ([[5, None], [6]], 5),
        ([[0], [1]], 0),
        ([[-5], [-3]], -5),
    ],
)
def test_the_watermark_is_the_newest_event_time_of_the_task_furthest_behind(times: Times, expected: int | None) -> None:
    assert watermark(times) == expected


def test_the_delay_is_taken_off() -> None:
    assert watermark([[100, 50], [80]], delay_us=30) == 50


def test_a_watermark_fits_into_its_record() -> None:
    assert watermark([[-(2**63)]], delay_us=1) == -(2**63)


@given(times_by_task, st.integers(0, 2**40))
def test_no_task_that_saw_data_is_left_behind(times: Times, delay_us: int) -> None:
    newest = [max(seen) for task in times if (seen := [time for time in task if time is not None])]
    found = watermark(times, delay_us)
    assert (found is None) == (newest == [])
    if found is not None:
        assert all(found <= time for time in newest)
        assert any(found == max(time - delay_us, -(2**63)) for time in newest)


@given(times_by_task, st.data())
def test_idle_tasks_and_the_order_of_tasks_do_not_count(times: Times, data: st.DataObject) -> None:
    idle: Times = data.draw(st.lists(st.sampled_from([[], [None]]), max_size=3))
    assert watermark(data.draw(st.permutations(times + idle))) == watermark(times)


@given(st.lists(st.none() | moments))
def test_a_querys_watermark_never_goes_back_and_stays_when_all_is_idle(epochs: list[int | None]) -> None:
    reached: int | None = None
    for number, now in enumerate(epochs):
        reached = advance(reached, now)
        assert reached == max((time for time in epochs[: number + 1] if time is not None), default=None)
