"""A run of a query, by its table alone: every event, and those that cannot happen."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakecommit.errors import CommitFailed
from lakecommit.progress import runs
from lakecommit.progress.backlog import Backlog
from lakecommit.progress.cadence import Pace
from lakecommit.progress.epochs import IllegalEvent
from lakecommit.progress.runs import (
    Asked,
    AtWork,
    Began,
    Broke,
    Caught,
    Doubted,
    Ended,
    Failed,
    Forgotten,
    InSnapshot,
    Opened,
    Pressed,
    Read,
    Resumed,
    Retried,
    Run,
    RunPhase,
    Sealing,
    Waits,
    after,
)
from lakecommit.progress.settings import TableSettings

SETTINGS = TableSettings(partition_columns=None, properties={})
OTHERS = TableSettings(partition_columns=("p",), properties={})
PACE = Pace(commit_wait_ms=7)
ERROR = CommitFailed("no")
FRESH = Run(1, 0)


def moved(run, *events):
    for event in events:
        run = after(run, event)
    return run


def doubts(run):
    return run.doubted, run.unread, run.failure


def test_a_run_asks_seals_and_ends():
    run = moved(FRESH, Asked(SETTINGS, PACE), Read(), Sealing(), InSnapshot(5), Ended())
    assert (run.phase, run.since_ms, run.ended, run.asked_for, run.pace) == (RunPhase.SEALED, 5, True, SETTINGS, PACE)
    assert doubts(run) == (False, False, None)


def test_what_a_query_is_read_with_gives_way_to_what_it_asks_for():
    assert moved(FRESH, Opened(SETTINGS), Opened(OTHERS)).asked_for == SETTINGS
    assert moved(FRESH, Opened(SETTINGS), Asked(OTHERS, PACE)).asked_for == OTHERS


def test_the_next_run_doubts_everything_and_counts_nobody_of_the_one_before():
    old = moved(FRESH, Asked(SETTINGS, PACE), Sealing(), Waits(1), Pressed(1), AtWork(1), Caught(Backlog()), Ended())
    new = after(old, Began(2))
    assert (new.number, new.phase, new.ended, new.waiting, new.pressed, new.backlog) == (
        *(2, RunPhase.BEGUN, False, 0, 0, None),
    )
    assert new.busy == 1, "who deals with an epoch of the old one comes back"
    assert (new.settings, new.pace, doubts(new)) == (SETTINGS, PACE, (True, False, None))


def test_what_came_while_the_store_was_read_is_read_again():
    reading = moved(FRESH, Asked(SETTINGS, PACE), Broke(), Forgotten(left=False))
    assert doubts(after(reading, Read())) == (False, False, None)
    assert doubts(moved(reading, Doubted(unread=True), Read())) == (True, True, None)


def test_what_a_failed_run_has_left_is_read_by_the_next():
    failed = moved(FRESH, Asked(SETTINGS, PACE), Doubted(unread=True), Failed(ERROR))
    assert doubts(failed) == (False, False, ERROR)
    assert doubts(after(failed, Began(2))) == (True, True, None)


def test_a_failure_from_before_the_first_epoch_was_of_other_settings():
    failed = moved(FRESH, Resumed(SETTINGS, PACE), Failed(ERROR))
    assert doubts(after(failed, Asked(OTHERS, PACE))) == (True, True, None)
    later = moved(FRESH, Asked(SETTINGS, PACE), Failed(ERROR), Asked(OTHERS, PACE))
    assert later.failure is ERROR, "one that it met itself is its own"


def test_an_epoch_that_breaks_may_be_repeated_by_the_next_run():
    run = moved(FRESH, Asked(SETTINGS, PACE), Sealing())
    assert not run.may_repeat
    broken = after(run, Broke())
    assert broken.may_repeat
    assert doubts(broken) == (True, True, None)


def test_what_was_pending_when_it_was_forgotten_is_unread():
    run = after(FRESH, Doubted())
    assert doubts(after(run, Forgotten(left=True))) == (False, True, None)
    assert doubts(after(run, Forgotten(left=False))) == (False, False, None)
    assert moved(run, Forgotten(left=False), Forgotten(left=False)).generation == 2


def test_who_drains_asks_again_for_what_has_failed_and_ended():
    assert doubts(moved(FRESH, Failed(ERROR), Ended(), Retried())) == (True, True, None)


@pytest.mark.parametrize(
    ("run", "event"),
    [
        (FRESH, Began(1)),
        (FRESH, Sealing()),
        (FRESH, Broke()),
        (FRESH, Retried()),
        (after(FRESH, Ended()), Retried()),
        (after(FRESH, Failed(ERROR)), Retried()),
        (FRESH, Waits(-1)),
        (FRESH, Pressed(-1)),
        (FRESH, AtWork(-1)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_illegal_event_changes_nothing(run, event):
    before = replace(run)
    with pytest.raises(IllegalEvent):
        after(run, event)
    assert run == before


EVENTS = st.sampled_from(
    [
        *(Asked(SETTINGS, PACE), Opened(OTHERS), Resumed(SETTINGS, PACE), Read(), Sealing(), Broke(), Ended()),
        *(Doubted(), Doubted(unread=True), Failed(ERROR), Forgotten(left=True), Forgotten(left=False), Retried()),
        *(
            Waits(1),
            Waits(-1),
            Pressed(1),
            Pressed(-1),
            AtWork(1),
            AtWork(-1),
            Caught(Backlog()),
            InSnapshot(9),
            "began",
        ),
    ]
)


@given(st.lists(EVENTS, max_size=40))
def test_whatever_happens_no_pending_epoch_is_forgotten_for_good(events):
    """What was unread stays so until it is read or the query fails; and what has failed is read once it goes on."""
    run = FRESH
    for each in events:
        event = Began(run.number + 1) if each == "began" else each
        before = run
        try:
            run = after(run, event)
        except IllegalEvent:
            assert run is before
            continue
        if before.unread and not isinstance(event, Read | Failed):
            assert run.unread
        if before.failure is not None and run.failure is None:
            assert run.doubted and run.unread
        assert run.generation >= before.generation and run.number >= before.number
        assert min(run.waiting, run.pressed, run.busy) >= 0


def test_every_event_is_in_the_theory_above_the_table():
    for event in runs.TRANSITIONS:
        assert event.__name__ in (runs.__doc__ or "")
    assert {field.name for field in fields(Run)} >= {"doubted", "unread", "failure", "generation"}


@pytest.mark.parametrize(
    ("events", "idle"),
    [
        ([], True),
        ([Began(2)], True),
        ([Opened(SETTINGS), Read()], True),
        ([Doubted()], True),
        ([Doubted(unread=True)], False),
        ([Resumed(SETTINGS, PACE)], False),
        ([Resumed(SETTINGS, PACE), Forgotten(left=False), Read()], True),
        ([Asked(SETTINGS, PACE)], False),
        ([Asked(SETTINGS, PACE), Sealing()], False),
        ([Failed(ERROR)], False),
        ([AtWork(1)], False),
        ([AtWork(1), AtWork(-1)], True),
        ([Waits(1)], False),
        ([Pressed(1)], False),
        ([Asked(SETTINGS, PACE), Sealing(), Began(2)], True),
    ],
)
def test_nothing_is_lost_with_a_run_that_has_asked_for_nothing(events, idle):
    assert moved(FRESH, *events).is_idle is idle
