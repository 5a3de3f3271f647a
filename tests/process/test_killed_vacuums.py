"""Real vacuums that are killed or stand still, beside readers with leases: nothing that is leased goes, and the next
vacuum, or the same one once it is awake, deletes the rest."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import lakecommit
from lakecommit.demo.place import Place
from lakecommit.errors import LeaseLost
from lakecommit.state.lease_layout import CLOCK, CUTS, INTENTS

from .evidence import paths_in
from .faulty_proxy import Fault
from .vacuums import vacuum_starter
from .versions import Versions

# In `make test`: tests/unit/leases/test_interleavings.py for pauses, tests/crash for a death at every single request.
pytestmark = pytest.mark.soak

# Deleting them takes so many requests that a vacuum is seen between them.
MANY = 20_000
FILES = {name: [f"{name}-{number}" for number in range(3)] for name in ("old", "kept", "new", "newest")}
# What a vacuum waits for while it stands still, and whether it has looked at its intent by then.
MOMENTS = [
    pytest.param("PUT", rf"/{CUTS}/", Fault.HELD_AFTER, False, id="between its cut and the look at its intent"),
    pytest.param("POST", "", Fault.HELD_BEFORE, True, id="between the look at its intent and its deletes"),
]


@pytest.fixture
def start_vacuum():
    with vacuum_starter() as start:
        yield start


def files_in(place: Place) -> set[str]:
    return {path for path in paths_in(place) if not path.startswith("_")}


def names_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()} if directory.exists() else set()


def test_a_vacuum_that_is_killed_at_random_moments_leaves_the_rest_to_the_next_one(
    start_vacuum, tmp_path, rng, table_format
):
    root, place = tmp_path / "table", Place(str(tmp_path / "table"), {}, None)
    old, kept = [f"old/{number}" for number in range(MANY)], [f"kept-{number}" for number in range(100)]
    versions = Versions(place, table_format)
    versions.put(old)
    versions.put(kept, removed=old)
    kinds = ["deleted", *rng.choices([CLOCK, INTENTS, CUTS, "deleted"], k=4)]
    with lakecommit.lease(place.location, version=1) as lease:
        versions.put(["new"], removed=kept)
        for kind in kinds:
            delay_s = rng.uniform(0, 0.05)
            print(f"kill {delay_s:.3f} s after one of {kind}")
            watched = root / ("old" if kind == "deleted" else kind)
            before = names_in(watched)
            vacuum = start_vacuum(place)
            vacuum.wait_until(lambda at=watched, before=before: names_in(at) != before, f"one of {kind}")
            time.sleep(delay_s)
            assert vacuum.kill(), "it had ended before; the table needs more files"
            assert files_in(place) >= {*kept, "new"}
            # Another reader comes and goes, and fences what the dead one has left.
            with lakecommit.lease(place.location) as other:
                assert other.version == 2
            assert names_in(root / INTENTS) == set()
        lease.check()
        assert start_vacuum(place).finish()["goesUpTo"] == 1
        assert files_in(place) == {*kept, "new"}
    start_vacuum(place).finish()
    assert files_in(place) == {"new"}


@pytest.mark.parametrize(("method", "pattern", "fault", "has_looked"), MOMENTS)
def test_readers_come_while_a_vacuum_stands_still(
    start_vacuum, proxy, place_on_s3, method, pattern, fault, has_looked, table_format
):
    place = place_on_s3
    versions = Versions(place, table_format)
    versions.put(FILES["old"])
    versions.put(FILES["kept"], removed=FILES["old"])
    versions.put(FILES["new"], removed=FILES["kept"])
    rule = proxy.rule(method, pattern, fault)
    vacuum = start_vacuum(place, endpoint=proxy.endpoint, read_timeout="300s")
    vacuum.wait_until(rule.met.is_set, "the request that it waits for")
    vacuum.pause()
    (cut,) = [path for path in paths_in(place) if path.startswith(f"{CUTS}/")]
    assert len(files_in(place)) == 9
    # Below the cut, where it is not known what goes once the vacuum wakes up.
    with pytest.raises(LeaseLost, match=f"{cut} says"), lakecommit.lease(place.location, 1, **place.store_options):
        pass
    with lakecommit.lease(place.location, **place.store_options) as lease:
        assert lease.version == 2
        versions.put(FILES["newest"], removed=FILES["new"])
        rule.let_go.set()
        vacuum.wake()
        said = vacuum.finish()
        assert (said["goesUpTo"], said["applied"]["deleted"], said["applied"]["fenced"]) == (2, 6, 0)
        assert files_in(place) == {*FILES["new"], *FILES["newest"]}
        # One that was fenced withdraws its cut and makes another.
        assert (cut in paths_in(place)) == has_looked
        lease.check()
        held = start_vacuum(place).finish()["heldBack"]
        assert [(each["lease"], each["files"]) for each in held] == [(lease.id, 3)]
        assert files_in(place) == {*FILES["new"], *FILES["newest"]}
    start_vacuum(place).finish()
    assert files_in(place) == set(FILES["newest"])
