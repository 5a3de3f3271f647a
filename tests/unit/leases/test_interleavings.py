"""Readers and vacuums in every order of their requests; and each rule switched off, which must then be missed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lakecommit.leases import cutting, taking
from lakecommit.leases.cutting import Cut
from lakecommit.leases.judging import Holds, NotNow
from lakecommit.leases.listed import SeenLease
from lakecommit.leases.taking import Objects, Parts, Taken
from lakecommit.state.lease_layout import INTENTS, LEASES, CutName, intent_path

from .actors import at_the_end, check, story
from .explorer import Violation, explore

STORIES: dict[str, dict[str, Any]] = {
    "a take beside a vacuum": {},
    "a take beside two vacuums": {"vacuums": 2},
    "a renewal in time": {"takes": 2, "vacuums": 1},
    "a renewal that may be late": {"takes": 2, "vacuums": 1, "time": True},
    "a late renewal beside a vacuum that takes nothing": {"takes": 2, "newest": 1, "time": True},
    "an intent that takes effect late": {"lost": (INTENTS,)},
    "a lease that takes effect late": {"lost": (LEASES,)},
}


# The others fail for the same reasons, as the faults show.
LONG = {"a take beside two vacuums", "a renewal that may be late", "a late renewal beside a vacuum that takes nothing"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak) if name in LONG else name for name in STORIES]
)
def test_no_order_loses_a_file_that_is_held(name: str) -> None:
    told = STORIES[name]
    explored = explore(story(**told), check, at_the_end if not told.get("lost") else lambda world: None)
    assert explored.states > 30
    assert explored.ends > 1


# What takes the place of what, in a way that breaks one rule.
Fault = Callable[[pytest.MonkeyPatch], None]


def _taking(*order: str) -> Fault:
    """A take whose steps come in another order, or not all of them."""

    async def take(parts: Parts, objects: Objects, version: int, wanted: Any) -> Taken | NotNow:
        old = set(objects.paths)
        for step in order:
            if step == "put":
                await taking._put(parts, objects, version)
            elif step == "fence":
                await taking._fence(parts)
            elif step == "look":
                found = await taking.look(parts, version, wanted)
                if isinstance(found, NotNow):
                    return found
            elif step == "replace":
                await parts.store.delete(sorted(old))
        return Taken(taking.Moment.of(parts.clock))

    return lambda patch: patch.setattr(taking, "take", take)


def _cutting(*order: str) -> Fault:
    async def guarded_cut(store: Any, newest: int, now_ms: int, *, who: Any, new_run: Any, **more: Any) -> Any:
        for _ in range(cutting.MOST_RUNS):
            run, leases, fenced = new_run(), [], False
            cut = ""
            for step in order:
                if step == "intent":
                    await store.put(intent_path(run), b"{}")
                elif step == "leases":
                    leases = list(await cutting.list_leases(store))
                elif step == "cut":
                    count = cutting.counting(leases, now_ms)
                    dead = tuple(each for each in leases if each not in count)
                    version = cutting.as_far_as(newest, count)
                    cut = CutName(version, run).path
                    await store.put(cut, b"{}")
                elif step == "look":
                    fenced = await store.get(intent_path(run)) is None
                elif step == "withdraw":
                    await store.delete([cut])
            if not fenced:
                return Cut(version, run, (), dead)
            await store.delete([cut])
        raise AssertionError("fenced all the time")

    return lambda patch: patch.setattr(cutting, "guarded_cut", guarded_cut)


def _one_object(patch: pytest.MonkeyPatch) -> None:
    """A renewal puts the same object again."""

    async def put(parts: Parts, objects: Objects, version: int) -> str:
        path = taking.LeaseName(version, objects.ttl_s, objects.lease, f"{1:032x}").path
        objects.paths.add(path)
        await parts.store.put(path, b"{}")  # type: ignore[attr-defined]
        return path

    patch.setattr(taking, "_put", put)


def _cuts_are_let_stand(patch: pytest.MonkeyPatch) -> None:
    """A fenced run leaves its cut."""
    real = cutting.delete_confirmed

    async def delete(store: Any, paths: list[str]) -> None:
        if not all("/cuts/" in path for path in paths):
            await real(store, paths)

    patch.setattr(cutting, "delete_confirmed", delete)


def _same_run(patch: pytest.MonkeyPatch) -> None:
    """An intent whose fate is unknown is put again under the same name."""
    real = cutting.create_anew

    async def create_anew(store: Any, path_of: Any, body: bytes, *, new_id: Any, **more: Any) -> str:
        unique = new_id()
        return await real(store, path_of, body, new_id=lambda: unique, **more)

    patch.setattr(cutting, "create_anew", create_anew)


def _newest_lease(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cutting, "oldest_leased", lambda leases: None)


def _reader_believes_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(taking, "judge", lambda above, loss: Holds())


def _impatient(patch: pytest.MonkeyPatch) -> None:
    """The first no counts: a fenced vacuum is not given the time to withdraw its cut."""
    patch.setattr(taking, "LOOKING_MS", 0)


def _by_another_clock(patch: pytest.MonkeyPatch) -> None:
    """Whoever judges by a clock that is ahead takes a living lease for a dead one."""
    patch.setattr(SeenLease, "expires_ms", property(lambda lease: lease.put_ms - 1))


FAULTS: dict[str, tuple[Fault, str]] = {
    "the reader puts its lease after the intents": (_taking("fence", "put", "look"), "a take beside a vacuum"),
    "the reader puts its lease last": (_taking("fence", "look", "put"), "a take beside a vacuum"),
    "the reader looks before it fences": (_taking("put", "look", "fence"), "a take beside a vacuum"),
    "the reader does not fence": (_taking("put", "look"), "a take beside a vacuum"),
    "the reader does not look": (_taking("put", "fence"), "a take beside a vacuum"),
    "the reader takes no cut for a loss": (_reader_believes_all, "a take beside a vacuum"),
    "the reader deletes before it puts": (_taking("replace", "put", "fence", "look"), "a renewal in time"),
    "the reader is impatient": (_impatient, "a take beside a vacuum"),
    "a renewal fences nobody": (_taking("put", "look"), "a renewal that may be late"),
    "the vacuum lists leases before its intent": (
        _cutting("leases", "intent", "cut", "look"),
        "a take beside a vacuum",
    ),
    "the vacuum looks before it cuts": (_cutting("intent", "leases", "look", "cut"), "a take beside a vacuum"),
    "the vacuum does not look": (_cutting("intent", "leases", "cut"), "a take beside a vacuum"),
    "the vacuum has no intent": (_cutting("leases", "cut"), "a take beside a vacuum"),
    "the vacuum takes its cut away before it deletes": (
        _cutting("intent", "leases", "cut", "look", "withdraw"),
        "a take beside a vacuum",
    ),
    "the vacuum sees no lease": (_newest_lease, "a take beside a vacuum"),
    "a fenced run leaves its cut": (_cuts_are_let_stand, "a take beside a vacuum"),
    "a living lease is taken for a dead one": (_by_another_clock, "a take beside a vacuum"),
    "an intent is put twice": (_same_run, "an intent that takes effect late"),
    "a renewal puts the same object": (
        _one_object,
        "a late renewal beside a vacuum that takes nothing",
    ),
}


# test_taking has what is small of it: each renewal puts an object of its own.
LONG_FAULTS = {"a renewal puts the same object"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak) if name in LONG_FAULTS else name for name in FAULTS]
)
def test_every_rule_is_missed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fault, story_of_it = FAULTS[name]
    fault(monkeypatch)
    told = STORIES[story_of_it]
    with pytest.raises(Violation):
        explore(story(**told), check, at_the_end if not told.get("lost") else lambda world: None)
