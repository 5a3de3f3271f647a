"""What cuts mean for a lease, by what the versions below them removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from lakecommit.formats.reading import GoneFile, ReadFile
from lakecommit.leases.judging import (
    CutsAbove,
    Holds,
    Loss,
    LossFinder,
    NotNow,
    Wanted,
    cuts_above,
    everything,
    judge,
)
from lakecommit.state.lease_layout import CUTS, CutName


def cut(version: int, run: int = 1) -> CutName:
    return CutName(version, f"{run:032x}")


@dataclass
class Version:
    version: int
    removed: Sequence[GoneFile] = ()
    added: Sequence[tuple[str, bool]] = ()
    extra: dict[str, Any] = field(default_factory=dict)

    def removes(self) -> Any:
        return iter(self.removed)

    def adds(self) -> Any:
        return iter([(ReadFile(path, 1, 1), new) for path, new in self.added])


def gone(path: str) -> GoneFile:
    return GoneFile(path, "", True)


def loss_of(changes: Sequence[Version], wanted: Wanted = everything, after: int = 3, until: int = 9) -> Loss | None:
    finder = LossFinder(after, wanted)
    for change in changes:
        if (loss := finder.take(change)) is not None:  # type: ignore[arg-type]
            return loss
    return finder.at_the_end(until)


def test_cuts_at_or_below_the_version_say_nothing() -> None:
    paths = [cut(version).path for version in (9, 2, 3, 4)]
    assert cuts_above(3, paths) == CutsAbove((cut(4), cut(9)))
    assert judge(cuts_above(9, paths), None) == Holds()


def test_a_cut_alone_is_no_loss() -> None:
    assert judge(cuts_above(3, [cut(9).path]), None) == Holds()


@pytest.mark.parametrize(("at", "lost"), [(4, False), (5, True), (6, True)])
def test_a_cut_is_a_loss_from_the_version_on_that_removed_something(at: int, lost: bool) -> None:
    found = judge(cuts_above(3, [cut(at).path]), Loss(5, "a.parquet"))
    assert found == (NotNow(cut(at).path, "version 5 removed a.parquet") if lost else Holds())


def test_the_lowest_cut_that_is_a_loss_is_named() -> None:
    found = judge(cuts_above(3, [cut(each).path for each in (8, 4, 6)]), Loss(5, "a.parquet"))
    assert isinstance(found, NotNow)
    assert found.cut == cut(6).path


def test_a_cut_that_is_not_understood_never_holds() -> None:
    path = f"{CUTS}/all-of-it.json"
    found = judge(cuts_above(3, [path]), None)
    assert isinstance(found, NotNow)
    assert found.cut == path


def test_the_first_removal_counts() -> None:
    changes = [Version(4), Version(5, [gone("a")]), Version(6, [gone("b")]), Version(7), Version(8), Version(9)]
    assert loss_of(changes) == Loss(5, "a")
    assert loss_of(changes, lambda each, new: each.path == "b") == Loss(6, "b")
    assert loss_of(changes, lambda each, new: False) is None


def test_what_was_added_later_is_told_apart() -> None:
    changes = [
        Version(4, added=[("rows", True), ("compacted", False)]),
        Version(5, [gone("old"), gone("rows"), gone("compacted")]),
        *(Version(number) for number in range(6, 10)),
    ]
    asked = []

    def wanted(each: GoneFile, new: bool | None) -> bool:
        asked.append((each.path, new))
        return False

    assert loss_of(changes, wanted) is None
    assert asked == [("old", None), ("rows", True), ("compacted", False)]


def test_a_version_that_is_missing_is_a_loss() -> None:
    assert loss_of([Version(4), Version(6)], lambda each, new: False) == Loss(
        5, reason="version 5 is no longer in the log"
    )


def test_a_log_that_ends_below_the_cut_is_another_tables() -> None:
    loss = loss_of([Version(4), Version(5)])
    assert loss is not None
    assert (loss.version, "made again" in str(loss)) == (6, True)


def test_it_is_enough_to_come_to_the_cut() -> None:
    assert loss_of([Version(4), Version(5)], until=5) is None
