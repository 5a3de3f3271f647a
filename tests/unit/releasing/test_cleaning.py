"""What may be deleted, decided without a store."""

from __future__ import annotations

import itertools

from lakecommit.model import RELEASE_AGE_MS, Attempt, AttemptId, Epoch, QueryId, Seal, TaskId, Winner
from lakecommit.progress.standing import Standing
from lakecommit.releasing.losers import losers, releasable
from lakecommit.state.stored import NamedManifest

QUERY = QueryId("q")
N, P, D, S, U, X = (
    Standing.OPEN,
    Standing.PENDING,
    Standing.DONE,
    Standing.STRAY,
    Standing.UNSEALED,
    Standing.PASSED,
)


def named(task: int, attempt: str, number: int = 0) -> NamedManifest:
    return NamedManifest(Attempt(QUERY, Epoch(3), TaskId(task), AttemptId(attempt * 32)), number, 0)


def seal(*winners: tuple[int, str, int]) -> Seal:
    return Seal(
        QUERY,
        Epoch(3),
        tuple(Winner(TaskId(task), AttemptId(attempt * 32), count, b"") for task, attempt, count in winners),
        None,
        "table",
        None,
        0,
    )


def test_who_has_lost():
    manifests = [named(0, "a"), named(0, "b"), named(1, "c"), named(1, "c", 1), named(2, "d"), named(7, "a")]
    winners = seal((0, "b", 1), (1, "c", 2), (2, "e", 0))
    lost = [named(0, "a"), named(2, "d"), named(7, "a")]
    for standing in (P, D, X):
        assert losers(standing, winners, manifests) == lost
    assert losers(S, winners, manifests) == manifests, "whoever is named in a zombie's epoch has lost"
    assert losers(N, None, manifests) == []
    assert losers(U, None, manifests) == [], "that is for the log to judge"


def test_an_epoch_is_released_when_it_is_done_covered_and_old():
    standings = dict(enumerate([D, D, D, D, P]))
    assert releasable(standings, Epoch(3), ()) == [0, 1, 2, 3]
    assert releasable(standings, Epoch(1), ()) == [0, 1], "the snapshots of the others are too young"
    assert releasable(standings, None, ()) == []
    assert releasable(dict(enumerate([D, D])), Epoch(1), ()) == [0], "the newest seal stays"


def test_nothing_is_released_after_an_epoch_that_stays():
    assert releasable(dict(enumerate([D, D, D, D])), Epoch(3), {1}) == [0], "a loser of epoch 1 may be uploading"
    assert releasable(dict(enumerate([D, X, D, D])), Epoch(3), ()) == [0]
    assert releasable(dict(enumerate([U, D, N, D, D])), Epoch(4), ()) == [1, 3], "without a seal there is no link"


def test_a_zombies_seal_goes_by_itself():
    assert releasable(dict(enumerate([S, D, S, D, P])), None, {2}) == [0]
    assert releasable(dict(enumerate([S, D, S, D, P])), None, ()) == [0, 2]


def test_whatever_stands_where_the_newest_seal_and_what_is_not_done_stay():
    for standings in itertools.product(Standing, repeat=4):
        for committed, young in itertools.product([None, 1, 3], [(), {1}, {0, 2}]):
            epochs = dict(enumerate(standings))
            released = releasable(epochs, committed, young)
            assert released == sorted(released)
            assert all(epochs[epoch] in (D, S) and epoch not in young for epoch in released)
            done = [epoch for epoch in released if epochs[epoch] is D]
            chain = [epoch for epoch in epochs if epochs[epoch] not in (N, S, U)]
            assert done == chain[: len(done)], "oldest first, without gaps"
            assert len(done) < len(chain) or not chain
            assert all(committed is not None and epoch <= committed for epoch in done)


def test_a_manifest_is_old_when_nobody_can_be_uploading():
    assert not named(0, "a").is_old(RELEASE_AGE_MS)
    assert named(0, "a").is_old(RELEASE_AGE_MS + 1)
