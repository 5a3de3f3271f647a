"""What has to be seen in the runs of each story of `tests/process/kafka/stories.py`, live or recorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from .epochs import Epoch, backlogs

Runs = Sequence[Sequence[Epoch]]


def available_now(runs: Runs) -> None:
    (epochs,) = runs
    everything = {"now-a": {"0": 100, "1": 20, "2": 0}, "now-b": {"0": 40, "1": 40}}
    assert len(epochs) > 2
    assert [json.loads(text or "") for text in epochs[0].latest] == [everything]
    assert [epoch.latest for epoch in epochs[1:]] == [()] * (len(epochs) - 1), "known once in a run"
    assert epochs[-1].ends() == everything
    assert [backlog.reached for backlog in backlogs(epochs)] == [False] * (len(epochs) - 1) + [True]
    assert "0/now-a/2" not in backlogs(epochs)[0].boundaries, "an empty partition has nothing to work off"


def more_comes_later(runs: Runs) -> None:
    """What comes after the start is no backlog."""
    (epochs,) = runs
    found = backlogs(epochs)
    assert found[0].boundaries == {"0/later/0": 60, "0/later/1": 60}
    assert found[-1].reached
    assert epochs[-1].ends() == {"later": {"0": 120, "1": 120}}
    for epoch, backlog in zip(epochs, found, strict=True):
        assert backlog.reached == all(end >= 60 for end in epoch.ends()["later"].values())
    assert not any(epoch.latest for epoch in epochs[1:])


def partition_added(runs: Runs) -> None:
    """It has no boundary and does not hold back the others."""
    (epochs,) = runs
    found = backlogs(epochs)
    for epoch, backlog in zip(epochs, found, strict=True):
        assert set(backlog.boundaries) <= {"0/grows/0"}
        assert backlog.reached == (epoch.ends()["grows"]["0"] >= 90)
    assert found[-1].reached
    assert epochs[-1].ends()["grows"]["1"] < 5000, "it is still being read"


def no_limit(runs: Runs) -> None:
    """The first epoch covers everything: never in backlog."""
    ((epoch,),) = runs
    assert epoch.latest == epoch.planned
    assert backlogs([epoch])[0].reached


def restarts(runs: Runs) -> None:
    """Each run has one epoch, and more records have come before the next one begins."""
    left, boundaries = None, []
    for (epoch,) in runs:
        assert epoch.latest, "each run knows what its sources have"
        left = backlogs([epoch], left)[0].to_json()
        boundaries.append(left and json.loads(left))
    both = {"0/restart/0": 50, "0/restart/1": 50}
    assert boundaries[:3] == [both, both, None], "a run goes on with the boundary that the one before left"
    assert boundaries[3] == {"0/restart/0": 200, "0/restart/1": 200}, "the next one has a boundary of its own"


def repeated_epoch(runs: Runs) -> None:
    """An epoch that the run before planned does not know what the sources have; the next one does."""
    (first,), again = runs
    assert (again[0].number, again[0].planned) == (first.number, first.planned)
    assert [bool(epoch.latest) for epoch in again] == [False, True, False]
    assert [backlog.reached for backlog in backlogs(again)] == [True, False, True]
    left = backlogs([first])[0].to_json()
    assert [backlog.reached for backlog in backlogs(again, left)] == [False, False, True]


def topic_created_again(runs: Runs) -> None:
    """A boundary that the new topic does not have is not waited for."""
    (first,), (second,) = runs
    left = backlogs([first])[0]
    assert left.boundaries == {"0/again/0": 100, "0/stays/0": 100}
    (after,) = backlogs([second], left.to_json())
    assert after.boundaries["0/stays/0"] == 100
    assert after.boundaries.get("0/again/0", 30) == 30


def topic_deleted(runs: Runs) -> None:
    """Nobody reads up to the boundary of a topic that is gone."""
    (first,), (second,) = runs
    left = backlogs([first])[0]
    assert left.boundaries == {"0/gone-a/0": 100, "0/gone-b/0": 100}
    assert set(second.ends()) == {"gone-b"}
    (after,) = backlogs([second], left.to_json())
    assert after.boundaries == {"0/gone-b/0": 100}
    assert left.after(second.planned).boundaries == {"0/gone-b/0": 100}


def two_sources(runs: Runs) -> None:
    (epochs,) = runs
    assert [len(epoch.planned) for epoch in epochs] == [2, 2, 2]
    assert [dict(backlog.boundaries) for backlog in backlogs(epochs)] == [{"1/right/0": 90}, {"1/right/0": 90}, {}]


EXPECTATIONS: Mapping[str, Callable[[Runs], None]] = {
    each.__name__: each
    for each in (
        available_now,
        more_comes_later,
        partition_added,
        no_limit,
        restarts,
        repeated_epoch,
        topic_created_again,
        topic_deleted,
        two_sources,
    )
}
