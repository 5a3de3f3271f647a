"""The committer's transitions and judgements, illegal events included, beside a small model."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lakecommit.errors import ContradictoryState
from lakecommit.model import Attempt, AttemptId, Epoch, Marks, QueryId, Report, SealedEpoch, TaskId, Totals
from lakecommit.progress.epochs import (
    EMPTY_EPOCHS_PER_SNAPSHOT,
    EpochVerdict,
    IllegalEvent,
    MarksSeen,
    Phase,
    Progress,
    Repeated,
    Replayed,
    Reported,
    Sealed,
    advance,
    judge_epoch,
    need_not_run,
    next_run,
    winners_of,
)

QUERY = QueryId("query")


def seal(epoch: int, *, empty: bool = False, fingerprint: str | None = "o") -> SealedEpoch:
    return SealedEpoch(
        Epoch(epoch), f"digest {epoch}".encode(), fingerprint, 0, Totals() if empty else Totals(1, 2, 20, 900)
    )


def started(mark: int | None = None, *pending: SealedEpoch, newest: SealedEpoch | None = None) -> Progress:
    marks = Marks(None if mark is None else Epoch(mark), None if mark is None else Epoch(mark))
    return advance(Progress(QUERY), Replayed(marks, newest or (pending[-1] if pending else None), pending))


def report(task: int, *, epoch: int = 0, query: str = QUERY, skipped: bool = False) -> Report:
    attempt = Attempt(QueryId(query), Epoch(epoch), TaskId(task), AttemptId(f"{task:032x}"))
    return Report(attempt, skipped, () if skipped else (b"manifest",))


def test_a_new_query_begins_with_epoch_zero_and_no_other():
    assert judge_epoch(started(), Epoch(0), None) is EpochVerdict.FRESH
    with pytest.raises(ContradictoryState, match="neither a mark nor a seal"):
        judge_epoch(started(), Epoch(1), None)


def test_the_epoch_after_the_mark_or_the_newest_seal_is_fresh():
    assert judge_epoch(started(4), Epoch(5), None) is EpochVerdict.FRESH
    assert judge_epoch(started(4, seal(5), seal(6)), Epoch(7), None) is EpochVerdict.FRESH


def test_the_newest_epoch_may_be_repeated_as_the_first_of_a_run_only():
    assert judge_epoch(started(4), Epoch(4), "x") is EpochVerdict.REPEATED
    assert judge_epoch(started(4, seal(5)), Epoch(5), "o") is EpochVerdict.REPEATED
    later = advance(started(4, seal(5)), Repeated(Epoch(5)))
    with pytest.raises(ContradictoryState, match="again"):
        judge_epoch(later, Epoch(5), "o")


@pytest.mark.parametrize("progress", [started(4, seal(5)), started(5, newest=seal(5)), started(None, seal(0))])
def test_the_newest_seal_with_the_same_offsets_need_not_be_run_again(progress):
    assert need_not_run(progress, progress.newest, "o")


@pytest.mark.parametrize(
    ("progress", "epoch", "fingerprint"),
    [
        pytest.param(started(), 0, "o", id="nothing is sealed"),
        pytest.param(started(4, seal(5)), 6, "o", id="the next one"),
        pytest.param(started(4, seal(5)), 4, "o", id="an earlier one"),
        pytest.param(started(6, newest=seal(5)), 5, "o", id="another sink has gone on"),
        pytest.param(started(5), 5, "o", id="another sink has run it"),
        pytest.param(started(4, seal(5)), 5, "other", id="other offsets"),
        pytest.param(started(4, seal(5)), 5, None, id="offsets that cannot be read"),
        pytest.param(started(4, seal(5, fingerprint=None)), 5, "o", id="sealed without offsets"),
        pytest.param(started(4, seal(5, fingerprint=None)), 5, None, id="no offsets at all"),
    ],
)
def test_every_other_epoch_is_left_to_spark(progress, epoch, fingerprint):
    assert not need_not_run(progress, Epoch(epoch), fingerprint)


@pytest.mark.parametrize("epoch", [0, 4, 7, 100])
def test_every_other_epoch_is_refused(epoch):
    with pytest.raises(ContradictoryState, match="rewound"):
        judge_epoch(started(4, seal(5)), Epoch(epoch), None)


def test_a_repetition_with_other_offsets_is_refused_and_unknown_offsets_pass():
    with pytest.raises(ContradictoryState, match="other offsets"):
        judge_epoch(started(4, seal(5, fingerprint="a")), Epoch(5), "b")
    assert judge_epoch(started(4, seal(5, fingerprint=None)), Epoch(5), "b") is EpochVerdict.REPEATED
    assert judge_epoch(started(4, seal(5, fingerprint="a")), Epoch(5), None) is EpochVerdict.REPEATED


def test_a_gap_between_mark_and_seals_is_refused():
    with pytest.raises(ContradictoryState, match="epoch 5 of query query has no seal"):
        started(4, seal(6))
    with pytest.raises(ContradictoryState, match="epoch 6 of query query has no seal"):
        started(4, seal(5), seal(7))


def test_a_mark_never_goes_back():
    for marks in (Marks(), Marks(Epoch(3), Epoch(4)), Marks(Epoch(4), Epoch(3))):
        with pytest.raises(ContradictoryState, match="went back"):
            advance(started(4), MarksSeen(marks))


def test_epochs_that_the_mark_has_reached_are_dropped_after_a_conflict():
    progress = advance(started(4, seal(5), seal(6), seal(7)), MarksSeen(Marks(Epoch(6), Epoch(6))))
    assert [each.epoch for each in progress.pending] == [7]


def test_a_run_ends_with_the_last_epoch_that_has_rows():
    progress = started(None, seal(0, empty=True), seal(1), seal(2, empty=True))
    assert [each.epoch for each in next_run(progress)] == [0, 1]
    assert next_run(started(None, seal(0, empty=True))) == ()


def test_a_thousand_empty_epochs_are_a_run_of_their_own():
    seals = tuple(seal(epoch, empty=True) for epoch in range(EMPTY_EPOCHS_PER_SNAPSHOT))
    assert next_run(started(None, *seals)) == seals
    assert next_run(started(None, *seals[:-1])) == ()


def test_winners_are_ordered_by_task():
    winners = winners_of([report(1), report(0)], QUERY, Epoch(0))
    assert [(w.task, w.manifests) for w in winners] == [(0, 1), (1, 1)]


@pytest.mark.parametrize(
    "reports",
    [
        [],
        [None],
        [report(0), None],
        [report(0), report(0)],
        [report(1)],
        [report(0, epoch=1)],
        [report(0, query="other")],
        [report(0), report(1, skipped=True)],
    ],
    ids=["none", "only a None", "a None", "twice", "task 0 missing", "other epoch", "other query", "skipped"],
)
def test_reports_that_do_not_make_an_epoch_seal_nothing(reports):
    with pytest.raises(ContradictoryState, match="nothing was"):
        winners_of(reports, QUERY, Epoch(0))


class Frontier(RuleBasedStateMachine):
    """Any order of events: legal ones keep the frontier right, illegal ones raise and change nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.progress = Progress(QUERY)
        self.sealed = -1
        self.mark = -1
        self.sealing = False
        self.first_of_run = True
        self.empty: set[int] = set()

    def legal(self, event):
        self.progress = advance(self.progress, event)

    def seal_of(self, epoch):
        return seal(epoch, empty=epoch in self.empty)

    @precondition(lambda self: self.progress.phase is Phase.STARTING)
    @rule(mark=st.integers(-1, 3), pending=st.lists(st.booleans(), max_size=3))
    def replay(self, mark, pending):
        self.mark, self.sealed = mark, mark + len(pending)
        self.empty = {mark + 1 + index for index, empty in enumerate(pending) if empty}
        self.read_again(newest_seal=bool(pending))

    @precondition(lambda self: self.progress.phase is not Phase.STARTING)
    @rule()
    def begin_another_run(self):
        # What was under way is sealed only where another driver has done it.
        self.sealed = max(self.sealed, self.mark)
        self.progress, self.sealing, self.first_of_run = Progress(QUERY), False, True
        self.read_again(newest_seal=self.sealed >= 0)

    def read_again(self, *, newest_seal):
        marks = Marks(Epoch(self.mark), Epoch(self.mark)) if self.mark >= 0 else Marks()
        seals = tuple(self.seal_of(epoch) for epoch in range(self.mark + 1, self.sealed + 1))
        self.legal(Replayed(marks, self.seal_of(self.sealed) if newest_seal else None, seals))

    @precondition(lambda self: self.progress.phase is Phase.READY)
    @rule()
    def begin(self):
        assert judge_epoch(self.progress, Epoch(self.sealed + 1), None) is EpochVerdict.FRESH
        self.legal(Reported(Epoch(self.sealed + 1)))
        self.sealing, self.first_of_run = True, False

    @precondition(lambda self: self.progress.phase is Phase.READY and self.sealed >= 0)
    @rule()
    def repeat(self):
        newest = Epoch(self.sealed)
        if self.first_of_run:
            assert judge_epoch(self.progress, newest, "o") is EpochVerdict.REPEATED
            self.legal(Repeated(newest))
            self.first_of_run = False
            return
        before = self.progress
        with pytest.raises(ContradictoryState):
            judge_epoch(self.progress, newest, "o")
        with pytest.raises(IllegalEvent):
            advance(self.progress, Repeated(newest))
        assert self.progress is before

    @precondition(lambda self: self.sealing)
    @rule(empty=st.booleans())
    def finish(self, empty):
        self.sealed += 1
        self.empty |= {self.sealed} if empty else set()
        self.legal(Sealed(self.seal_of(self.sealed)))
        self.sealing = False

    @precondition(lambda self: self.progress.phase is not Phase.STARTING)
    @rule(ahead=st.integers(0, 5))
    def see(self, ahead):
        # Another driver may have sealed and committed the epoch that is being sealed here, but none after it.
        reach = min(self.mark + ahead, self.sealed + (1 if self.sealing else 0))
        if reach >= 0:
            self.mark = max(self.mark, reach)
            self.legal(MarksSeen(Marks(Epoch(self.mark), Epoch(self.mark))))

    @rule(
        event=st.sampled_from([Replayed(Marks(), None, ()), Reported(Epoch(99)), Repeated(Epoch(99)), Sealed(seal(99))])
    )
    def illegal(self, event):
        if isinstance(event, Replayed) and self.progress.phase is Phase.STARTING:
            return
        before = self.progress
        with pytest.raises(IllegalEvent):
            advance(self.progress, event)
        assert self.progress is before

    @invariant()
    def pending_is_what_lies_between_mark_and_newest_seal(self):
        assert [each.epoch for each in self.progress.pending] == list(range(self.mark + 1, self.sealed + 1))

    @invariant()
    def empty_epochs_are_no_load_and_end_no_run(self):
        pending = range(self.mark + 1, self.sealed + 1)
        with_rows = [epoch for epoch in pending if epoch not in self.empty]
        assert self.progress.load == sum((self.seal_of(epoch).totals for epoch in with_rows), Totals())
        end = with_rows[-1] + 1 if with_rows else self.mark + 1
        if not with_rows and len(pending) >= 3:
            end = self.sealed + 1
        assert [each.epoch for each in next_run(self.progress, empty_epochs=3)] == list(range(self.mark + 1, end))


TestFrontier = Frontier.TestCase
TestFrontier.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
