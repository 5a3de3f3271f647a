"""The decisions, on offsets of every shape."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakecommit.progress.backlog import Backlog

positions = st.integers(0, 20)
partitions = st.sampled_from(["0", "1", "2"])
topics = st.dictionaries(st.sampled_from(["orders", "returns"]), st.dictionaries(partitions, positions, max_size=3))
offsets = st.lists(st.none() | topics.map(json.dumps), min_size=2, max_size=2)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
backlogs = st.dictionaries(st.text(), numbers).map(Backlog)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def test_every_number_is_a_partition():
    latest = ['{"orders":{"0":10,"1":20},"returns":{"0":30}}', "7", '{"shards":[{"at":1},{"at":2.5}]}']
    planned = ['{"orders":{"0":0,"1":0},"returns":{"0":0}}', "0", '{"shards":[{"at":0},{"at":0}]}']
    assert Backlog.begin(latest, planned).boundaries == {
        "0/orders/0": 10,
        "0/orders/1": 20,
        "0/returns/0": 30,
        "1": 7,
        "2/shards/0/at": 1,
        "2/shards/1/at": 2.5,
    }


def test_names_do_not_run_into_one_another():
    latest = ['{"a/b":1,"a":{"b":2},"a~1b":3}']
    planned = ['{"a/b":0,"a":{"b":0},"a~1b":0}']
    assert sorted(Backlog.begin(latest, planned).boundaries.values()) == [1, 2, 3]


@pytest.mark.parametrize(
    "latest",
    [
        None,
        "",
        "null",
        "true",
        '"12"',
        "{}",
        "[]",
        "{",
        "latest",
        '{"a":true,"b":"5","c":null}',
        "NaN",
        "Infinity",
        "1e999",
        "9" * 5000,
        "[" * 100_000,
        '{"a":' * 100_000,
    ],
)
def test_what_is_no_number_is_no_partition(latest):
    assert Backlog.begin([latest], [latest]).reached
    assert Backlog.begin([latest], ["0"]).reached
    assert Backlog({"0": 5}).after([latest]).reached


def test_numbers_of_any_size_are_told_apart():
    latest, planned = 10**400, 10**400 - 1
    backlog = Backlog.begin([str(latest)], [str(planned)])
    assert not backlog.reached
    assert Backlog.from_json(backlog.to_json()).after([str(latest)]).reached


def test_a_first_epoch_that_covers_everything_is_no_backlog():
    latest = ['{"orders":{"0":10,"1":0}}']
    assert Backlog.begin(latest, latest).reached
    assert Backlog.begin(latest, ['{"orders":{"0":11,"1":0}}']).reached


def test_a_source_that_reports_nothing_is_never_in_backlog():
    backlog = Backlog.begin([None, '{"a":{"0":5}}'], ['{"logOffset":3}', '{"a":{"0":1}}'])
    assert backlog.boundaries == {"1/a/0": 5}
    assert Backlog.begin([], ['{"a":{"0":1}}']).reached


def test_partitions_are_dropped_one_by_one():
    backlog = Backlog.begin(['{"a":{"0":10,"1":10}}'], ['{"a":{"0":0,"1":0}}'])
    backlog = backlog.after(['{"a":{"0":10,"1":4}}'])
    assert backlog.boundaries == {"0/a/1": 10}
    backlog = backlog.after(['{"a":{"0":3,"1":9}}'])
    assert backlog.boundaries == {"0/a/1": 10}, "a report that comes late brings nothing back"
    assert backlog.after(['{"a":{"0":12,"1":11}}']).reached


def test_a_partition_that_appears_later_has_no_boundary():
    backlog = Backlog.begin(['{"a":{"0":10}}'], ['{"a":{"0":0}}']).after(['{"a":{"0":1,"1":0}}'])
    assert backlog.boundaries == {"0/a/0": 10}
    assert backlog.after(['{"a":{"0":10,"1":0}}']).reached


@pytest.mark.parametrize("planned", [[], [None], ['{"b":{"0":1}}'], ["not json"]])
def test_a_partition_whose_offset_is_not_known_does_not_hold_the_backlog(planned):
    assert Backlog({"0/a/0": 10}).after(planned).reached


def test_a_restart_goes_on_with_what_was_left():
    left = Backlog({"0/a/0": 10, "1/b/0": 20})
    latest, planned = ['{"a":{"0":90,"1":90}}', '{"b":{"0":90}}'], ['{"a":{"0":5,"1":0}}', '{"b":{"0":20}}']
    assert left.resume(latest, planned).boundaries == {"0/a/0": 10}


def test_a_restart_after_the_boundary_begins_anew():
    latest, planned = ['{"a":{"0":90}}'], ['{"a":{"0":5}}']
    assert Backlog().resume(latest, planned) == Backlog.begin(latest, planned)
    assert Backlog().resume(latest, planned).boundaries == {"0/a/0": 90}


def test_a_restart_waits_for_nothing_that_the_sources_do_not_have():
    left = Backlog({"0/again/0": 100, "0/gone/0": 100, "1/logOffset": 50, "2/x/0": 7})
    latest = ['{"again":{"0":30}}', '{"logOffset":12}', None]
    planned = ['{"again":{"0":10},"gone":{"0":10}}', '{"logOffset":10}', '{"x":{"0":1}}']
    assert left.resume(latest, planned).boundaries == {"0/again/0": 30, "1/logOffset": 12, "2/x/0": 7}


@given(offsets, st.lists(offsets, min_size=1))
def test_it_never_goes_back_on(latest, epochs):
    backlog, reached = Backlog.begin(latest, epochs[0]), False
    for planned in epochs:
        after = backlog.after(planned)
        assert after.boundaries.items() <= backlog.boundaries.items()
        assert after.reached or not reached
        assert after.after(planned) == after, "the same report again is ignored"
        backlog, reached = after, after.reached


@given(offsets, offsets, offsets, offsets)
def test_the_order_of_reports_does_not_matter(latest, first, one, other):
    backlog = Backlog.begin(latest, first)
    assert backlog.after(one).after(other) == backlog.after(other).after(one)


@given(offsets, offsets, offsets)
def test_it_is_reached_exactly_when_no_partition_is_short(latest, first, planned):
    """The same said again, topic by topic."""

    def ends(texts):
        parsed = [json.loads(text) if text else {} for text in texts]
        return {
            (source, topic, partition): position
            for source, offset in enumerate(parsed)
            for topic, rows in offset.items()
            for partition, position in rows.items()
        }

    had, began, now = ends(latest), ends(first), ends(planned)
    short = {key for key in had if key in began and began[key] < had[key] and key in now and now[key] < had[key]}
    assert Backlog.begin(latest, first).after(planned).reached == (not short)


@given(backlogs, offsets, offsets)
def test_a_restart_never_adds_a_boundary_to_what_was_left(left, latest, planned):
    resumed = left.resume(latest, planned)
    if not left.reached:
        assert all(boundary <= left.boundaries[partition] for partition, boundary in resumed.boundaries.items())


@given(backlogs)
def test_json_keeps_everything(backlog):
    text = backlog.to_json()
    assert (text is None) == backlog.reached
    assert Backlog.from_json(text) == backlog


@given(anything.map(json.dumps) | st.text() | st.none())
def test_json_that_somebody_else_wrote_never_stops_a_query(text):
    backlog = Backlog.from_json(text)
    assert Backlog.from_json(backlog.to_json()) == backlog
    backlog.after([text])
    backlog.resume([text], [text])


@pytest.mark.parametrize("text", ["[1]", "5", '{"0/a/0":true}', '{"0/a/0":"9"}', '{"0/a/0":NaN}', '{"0/a/0":{}}', "{"])
def test_a_backlog_of_another_shape_counts_as_reached(text):
    assert Backlog.from_json(text).reached
