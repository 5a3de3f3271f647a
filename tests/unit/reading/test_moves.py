"""The table of a planner's moves: every event in every standing, and whole lives by chance against what must hold."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakecommit.errors import LeaseLost
from lakecommit.progress.epochs import IllegalEvent
from lakecommit.reading.planning.moves import (
    TRANSITIONS,
    Acknowledged,
    Asked,
    Chosen,
    ClosePlan,
    Doubted,
    Given,
    Lost,
    MoveOn,
    Opened,
    OpenPlan,
    Planning,
    Standing,
    Stopped,
    TakeAgain,
    TakeLease,
    Took,
    Wants,
    after,
    wants,
)
from lakecommit.reading.planning.offsets import BEGIN, NO_VERSION, At, Offset, Phase, PlanName
from tests.unit.reading.test_offsets import LEASE

PLAN = PlanName(5, 9, "cd" * 32, 100)


def split_id(number: int) -> str:
    return f"{number:020d}/f#@{0:020d}"


def in_snapshot(number: int, lease: str = LEASE) -> Offset:
    return Offset("table", lease, None, Phase.SNAPSHOT, NO_VERSION, At(5, split_id(number)), PLAN)


def in_log(version: int, lease: str = LEASE) -> Offset:
    return Offset("table", lease, None, Phase.LOG, version, At(version), PLAN)


NEW = Planning()
GOES_ON = Planning(goes_on=True)
TAKEN = Planning(Standing.SNAPSHOT, LEASE, 5)
OPEN = Planning(Standing.SNAPSHOT, LEASE, 5, PLAN, split_id(9), given=(1, NO_VERSION, split_id(9)))
IN_LOG = Planning(Standing.LOG, LEASE, 5, given=(2, 8, ""))
LOST = Planning(Standing.LOST, LEASE, 5, failure=LeaseLost("lost"))
STOPPED = Planning(Standing.STOPPED, LEASE, 5)
ALL = (NEW, GOES_ON, TAKEN, OPEN, IN_LOG, LOST, STOPPED)


def test_every_event_is_in_the_table():
    assert set(TRANSITIONS) == {Asked, Chosen, Took, Opened, Doubted, Given, Acknowledged, Lost, Stopped}


def test_the_lease_comes_first_then_the_plan():
    assert after(NEW, Asked(BEGIN))[1] == (TakeLease(),)
    assert after(NEW, Asked(in_snapshot(3)))[1] == (TakeLease(LEASE, 5, Phase.SNAPSHOT, split_id(3)),)
    assert after(NEW, Asked(BEGIN, in_snapshot(3)))[1] == (TakeLease(LEASE, 5, Phase.SNAPSHOT),)
    assert after(NEW, Asked(in_snapshot(9), in_log(5)))[1] == (TakeLease(LEASE, 5, Phase.LOG, split_id(9)),)
    assert after(NEW, Asked(in_log(7), in_log(8)))[1] == (TakeLease(LEASE, 7, Phase.LOG),)
    assert after(TAKEN, Asked(BEGIN))[1] == (OpenPlan(),)
    assert after(TAKEN, Asked(BEGIN, in_snapshot(3)))[1] == (OpenPlan(PLAN),)
    assert after(TAKEN, Asked(in_snapshot(9), in_log(5)))[1] == ()
    assert after(OPEN, Asked(in_snapshot(3)))[1] == ()


def test_only_an_acknowledgement_at_or_past_the_last_split_releases_the_plan():
    for end in (BEGIN, in_snapshot(8), in_snapshot(9, "f" * 32), in_log(5, "f" * 32), in_snapshot(10)):
        assert after(OPEN, Acknowledged(end))[1] == ()
    released, effects = after(OPEN, Acknowledged(in_snapshot(9)))
    assert effects == (ClosePlan(PLAN, released=True),)
    assert (released.standing, released.plan) == (Standing.LOG, None)
    past = Planning(**{**fields(OPEN), "given": (2, 5, "")})
    assert after(past, Acknowledged(in_log(5)))[1] == (ClosePlan(PLAN, released=True),)


def test_the_lease_moves_on_with_acknowledged_versions_and_never_back():
    moved, effects = after(IN_LOG, Acknowledged(in_log(7)))
    assert (moved.keeps, effects) == (7, (MoveOn(7),))
    for version in (7, 6, 5, 9):
        assert after(moved, Acknowledged(in_log(version))) == (moved, ())


def test_what_has_failed_stays_so_and_what_has_stopped_is_asked_nothing():
    with pytest.raises(LeaseLost, match="lost"):
        after(LOST, Asked(in_log(7)))
    with pytest.raises(IllegalEvent):
        after(STOPPED, Asked(in_log(7)))
    for planning in (NEW, LOST, STOPPED):
        assert after(planning, Acknowledged(in_log(7))) == (planning, ())
    assert after(OPEN, Lost(LeaseLost("lost")))[1] == (ClosePlan(PLAN, released=False),)
    assert after(OPEN, Stopped())[1] == (ClosePlan(PLAN, released=False),)
    assert after(STOPPED, Lost(LeaseLost("lost")))[0] is STOPPED


@pytest.mark.parametrize(
    "event, allowed",
    [
        (Chosen(None), {NEW}),
        (Chosen(7), {NEW}),
        (Took(LEASE, 5, Phase.LOG), {NEW, GOES_ON}),
        (Doubted(), {OPEN}),
        (Opened(PLAN, split_id(9)), {TAKEN}),
        (Given(in_snapshot(3)), {OPEN}),
        (Given(in_log(6)), {TAKEN, OPEN, IN_LOG}),
        (Given(in_log(6, "f" * 32)), set()),
    ],
)
def test_what_cannot_happen_changes_nothing(event: object, allowed: set[Planning]):
    for planning in ALL:
        if planning in allowed:
            after(planning, event)
        else:
            with pytest.raises(IllegalEvent):
                after(planning, event)


def test_what_was_in_doubt_is_asked_once_more_when_the_plan_is_open():
    assert after(OPEN, Doubted()) == (OPEN, (TakeAgain(5),))


THERE, ADDED, REWRITTEN = None, True, False


@pytest.mark.parametrize(
    "planning, expected",
    [
        # Where a stream starts is not known yet, or it starts with all that is in the table.
        (NEW, (Wants.YES, Wants.YES, Wants.YES)),
        (after(NEW, Chosen(None))[0], (Wants.YES, Wants.YES, Wants.YES)),
        # The lease of one that reads all changes is for version 0, whose own files are the first of them.
        (after(NEW, Chosen(0))[0], (Wants.YES, Wants.YES, Wants.NO)),
        (after(NEW, Chosen(7))[0], (Wants.NO, Wants.YES, Wants.NO)),
        (GOES_ON, (Wants.IN_DOUBT, Wants.YES, Wants.NO)),
        (TAKEN, (Wants.IN_DOUBT, Wants.YES, Wants.NO)),
        (OPEN, (Wants.AS_PLANNED, Wants.YES, Wants.NO)),
        (IN_LOG, (Wants.NO, Wants.YES, Wants.NO)),
    ],
)
def test_what_a_reader_loses_if_a_file_goes(planning: Planning, expected: tuple[Wants, Wants, Wants]):
    assert tuple(wants(planning, new) for new in (THERE, ADDED, REWRITTEN)) == expected


def test_a_stream_that_goes_on_with_a_lease_knows_it_before_it_has_it():
    assert after(NEW, Asked(BEGIN))[0] == NEW
    assert after(NEW, Asked(in_snapshot(3)))[0] == GOES_ON
    assert after(GOES_ON, Asked(BEGIN))[0] == NEW
    assert after(GOES_ON, Took(LEASE, 5, Phase.SNAPSHOT))[0] == TAKEN


def fields(planning: Planning) -> dict[str, object]:
    return {name: getattr(planning, name) for name in Planning.__slots__}


ORDER = [*(in_snapshot(number) for number in (3, 6, 9)), *(in_log(version) for version in (5, 6, 7))]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_whatever_spark_acknowledges_the_plan_is_there_until_its_last_split_is(data: st.DataObject):
    """Batches come in order; each may be asked for again, and acknowledgements come late, twice or not at all."""
    now, planned, acknowledged, releases = TAKEN, 0, -1, 0
    now, _ = after(now, Opened(PLAN, split_id(9)))
    for _ in range(30):
        known = st.integers(0, max(0, planned - 1))
        step = data.draw(st.sampled_from(["plan", "again", "acknowledge", "stranger"]))
        effects: tuple[object, ...] = ()
        if step == "plan" and planned < len(ORDER):
            now, _ = after(now, Given(ORDER[planned]))
            planned += 1
        elif step == "again" and planned and now.plan is not None:
            end = data.draw(known)
            now, effects = after(now, Asked(ORDER[end - 1] if end else BEGIN, ORDER[end]))
        elif step == "acknowledge" and planned > 1:
            # Spark plans the next batch first.
            number = data.draw(st.integers(0, planned - 2))
            acknowledged = max(acknowledged, number)
            now, effects = after(now, Acknowledged(ORDER[number]))
        elif step == "stranger":
            now, effects = after(now, Acknowledged(data.draw(st.sampled_from([in_log(9), in_log(5, "f" * 32)]))))
        releases += sum(isinstance(each, ClosePlan) and each.released for each in effects)
        assert (now.plan is None) == (acknowledged >= 2) == (releases == 1)
        assert now.keeps == max([5, *(each.version for each in ORDER[: acknowledged + 1])])
