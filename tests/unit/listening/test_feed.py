"""What is told next: for any order of snapshots, looks at the table, and listeners that come and go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lakecommit.listening.api import CommittedSnapshot, Partition
from lakecommit.listening.feed import HELD_PARTITIONS, HELD_SNAPSHOTS, Feed, Untold
from lakecommit.model import Epoch


def snapshot(first, last, partitions=1):
    some = tuple(Partition({"day": str(n)}, f"day={n}") for n in range(partitions))
    return CommittedSnapshot("table", last, "query", first, last, 1, 1, 1, None, some)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("commits"), st.integers(1, 4)),
            st.tuples(st.just("somebody else commits"), st.integers(1, 4)),
            st.tuples(st.just("tells"), st.integers(0, 1)),
        )
    )
)
def test_every_listener_is_told_of_every_epoch_once_and_in_order(story):
    feed, end = Feed(), -1
    told: list[list[int]] = [[], []]

    def tell(listener):
        reached = told[listener][-1] if told[listener] else -1
        found = feed.after(Epoch(reached))
        match found:
            case None:
                assert reached == end
                return False
            case Untold(last):
                told[listener] += range(reached + 1, last + 1)
            case CommittedSnapshot():
                told[listener] += range(found.first_epoch, found.last_epoch + 1)
        feed.told(Epoch(min(each[-1] if each else -1 for each in told)))
        return True

    for what, number in story:
        if what == "commits":
            feed.add(snapshot(end + 1, end + number))
            end += number
        elif what == "somebody else commits":
            end += number
            feed.see(Epoch(end), end)
        else:
            tell(number)
    for listener in (0, 1):
        while tell(listener):
            pass
        assert told[listener] == list(range(end + 1))


def test_memory_holds_few_snapshots_and_few_partitions():
    feed = Feed()
    for epoch in range(2 * HELD_SNAPSHOTS):
        feed.add(snapshot(epoch, epoch))
    assert len(feed._held) == HELD_SNAPSHOTS
    assert feed.after(Epoch(-1)) == Untold(Epoch(HELD_SNAPSHOTS - 1))
    large = Feed()
    for epoch in range(3):
        large.add(snapshot(epoch, epoch, HELD_PARTITIONS))
    assert len(large._held) == 1
    assert large.after(Epoch(-1)) == Untold(Epoch(1))
    large.told(Epoch(2))
    assert (len(large._held), large._partitions) == (0, 0)


def test_who_stands_in_the_middle_of_a_snapshot_is_told_of_all_of_it():
    feed = Feed()
    feed.add(snapshot(0, 4))
    assert feed.after(Epoch(2)) == snapshot(0, 4)
