"""Splits, limits and the plan of a snapshot: the same whoever builds it, in little memory, gone when it is closed."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from lakecommit.errors import CorruptState, LocalDiskFailed
from lakecommit.formats.reading import ReadFile
from lakecommit.reading.planning.limits import Budget, Limits
from lakecommit.reading.planning.plan import Plan, build_plan
from lakecommit.reading.planning.splits import OPEN_COST_BYTES, Split, is_split_id, packed, splits_of
from tests.unit.reading.tables import file


async def pages_of(files: Sequence[ReadFile]) -> AsyncIterator[Sequence[ReadFile]]:
    for start in range(0, len(files), 7):
        yield files[start : start + 7]


async def plan_of(files: Sequence[ReadFile], split_bytes: int = 100, **more: object) -> Plan:
    return await build_plan(pages_of(files), 1, split_bytes, memory_bytes=1, **more)  # type: ignore[arg-type]


MANY = [file(f"f{number:04d}", 1 + number % 250, at_ms=number % 13) for number in range(1000)]


async def test_it_has_every_byte_once_and_in_the_order_of_ids_whatever_order_files_come_in() -> None:
    shuffled = random.Random(7).sample(MANY, len(MANY))
    one, other = await plan_of(MANY), await plan_of(shuffled)
    splits = list(one.after(""))
    assert one.name == other.name and splits == list(other.after(""))
    assert [split.id for split in splits] == sorted(split.id for split in splits)
    assert one.last == splits[-1].id and one.name.splits == len(splits)
    assert sum(split.size_bytes for split in splits) == sum(each.size_bytes for each in MANY)
    assert all(is_split_id(split.id) and split.file.stats is None for split in splits)


@pytest.mark.parametrize("last", [[], [file("f0999", 250, at_ms=7)], [ReadFile("f0999", 250, 11, vector_id="v")]])
async def test_another_file_or_another_vector_makes_another_digest(last: list[ReadFile]) -> None:
    assert (await plan_of(MANY)).name.digest != (await plan_of([*MANY[:-1], *last])).name.digest


async def test_files_that_nobody_wants_count_for_its_name_and_are_not_read() -> None:
    all_of_it, some = (
        await plan_of(MANY),
        await plan_of(MANY, keep=lambda page: [each for each in page if each.path < "f0500"]),
    )
    assert some.name == all_of_it.name
    assert {split.file.path for split in some.after("")} == {each.path for each in MANY[:500]}
    assert some.last < all_of_it.last


async def test_it_is_read_from_anywhere() -> None:
    plan = await plan_of(MANY)
    splits = list(plan.after(""))
    assert list(plan.after(splits[600].id)) == splits[601:]
    assert list(plan.between(splits[10].id, splits[700].id)) == splits[11:701]


async def test_it_tells_what_is_read_later_to_any_thread() -> None:
    plan = await plan_of([file("a", 250), file("b", at_ms=1)])
    first, second, third, _ = (split.id for split in plan.after(""))
    told: list[bool] = []

    def ask() -> None:
        told.extend(plan.reads_after(*each) for each in ((second, "a"), (third, "a"), (third, "b"), (first, "c")))
        plan.close()
        told.append(plan.reads_after("", "b"))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert told == [True, False, True, False, False]


async def test_a_file_that_comes_twice_is_damage() -> None:
    with pytest.raises(CorruptState, match="names a data file twice"):
        await plan_of([file("a"), file("b"), file("a")])


async def test_it_leaves_no_file_and_says_where_there_is_no_room(tmp_path: Path) -> None:
    plan = await plan_of(MANY, local_dir=str(tmp_path))
    assert os.listdir(tmp_path) == []
    plan.close()
    with pytest.raises(LocalDiskFailed, match="SPARK_LOCAL_DIRS"):
        await plan_of(MANY, local_dir=str(tmp_path / "none"))


def test_a_file_is_cut_at_whole_sizes_and_an_empty_one_is_there() -> None:
    assert [(split.begin, split.end) for split in splits_of(file("a", 250), 100)] == [(0, 100), (100, 200), (200, 250)]
    assert [(split.begin, split.end) for split in splits_of(file("a", 200), 100)] == [(0, 100), (100, 200)]
    assert [(split.begin, split.end) for split in splits_of(file("a", 0), 100)] == [(0, 0)]


def test_small_splits_are_read_together_and_in_order() -> None:
    mib = 1024 * 1024
    splits = [Split(file(f"f{number}"), 0, mib) for number in range(10)] + [Split(file("large"), 0, 64 * mib)]
    together = list(packed(splits, 4 * (mib + OPEN_COST_BYTES)))
    assert [len(each) for each in together] == [4, 4, 2, 1]
    assert [split for each in together for split in each] == splits


def test_the_first_split_always_fits() -> None:
    budget = Budget(Limits(files=2, size_bytes=50))
    large, small = (Split(file(name), 0, size) for name, size in (("large", 90), ("small", 1)))
    assert budget.take(large) and not budget.take(small) and budget.is_used_up
    budget = Budget(Limits(files=2, size_bytes=50))
    assert budget.take(small) and not budget.take(large) and not budget.is_used_up
    assert budget.take(small) and budget.is_used_up and not budget.take(small)
