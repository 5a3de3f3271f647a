"""Which seals are one history."""

from __future__ import annotations

from lakecommit.model import Epoch
from lakecommit.state.chain import Link, chained, first_break


def link(epoch: int, previous: int | None, digest: str = "") -> Link:
    return Link(Epoch(epoch), (digest or f"d{epoch}").encode(), None if previous is None else f"d{previous}".encode())


def test_the_chain_leads_from_the_newest_seal_back():
    assert chained([]) == frozenset()
    assert chained([link(0, None), link(1, 0), link(2, 1)]) == {0, 1, 2}


def test_a_seal_that_was_created_again_after_its_release_is_not_in_the_chain():
    # Epochs 0 to 3 were released; somebody who slept has put epoch 2 again.
    assert chained([link(2, 1, "again"), link(4, 3), link(5, 4)]) == {4, 5}
    # The same in the middle of what is not released: the digest does not match.
    assert chained([link(3, 2), link(4, 3, "again"), link(5, 4)]) == {5}


def test_the_chain_steps_over_epochs_that_another_sink_ran():
    assert chained([link(5, 4), link(10, 5), link(11, 10)]) == {5, 10, 11}


def test_seals_of_one_history_have_no_break():
    assert first_break([]) is None
    assert first_break([link(5, 4)]) is None, "those before it are released"
    assert first_break([link(5, 4), link(10, 5), link(11, 10)]) is None


def test_the_first_break_is_where_the_later_does_not_carry_the_digest_before():
    again = link(4, 3, "again")
    assert first_break([link(3, 2), again, link(5, 4), link(6, 4)]) == (again, link(5, 4))
    assert first_break([link(3, 2), link(4, 2), link(5, 4)]) == (link(3, 2), link(4, 2))
