"""Offsets: written exactly so, and nothing else is taken for one."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from lakecommit.errors import CorruptState, UnsupportedTable
from lakecommit.progress.backlog import Backlog
from lakecommit.reading.planning.offsets import (
    BEGIN,
    NO_VERSION,
    At,
    Offset,
    Phase,
    PlanName,
    decode,
    encode,
    newest,
    no_plan,
)

LEASE = "0123456789abcdef" * 2
SPLIT = f"{17:020d}/day=1/a#b@c.parquet#vector@{100:020d}"
PLAN = PlanName(7, 3, "ab" * 32, 100)
SNAPSHOT = Offset("table", LEASE, None, Phase.SNAPSHOT, NO_VERSION, At(7, SPLIT), PLAN)
LOG = Offset("table", LEASE, None, Phase.LOG, 9, At(9), PLAN)
WITHIN = Offset("table", LEASE, None, Phase.LOG, 9, At(10, SPLIT), PLAN)
FROM_VERSION = Offset("table", LEASE, 3, Phase.LOG, 9, At(9), no_plan(100))


def test_it_is_written_so():
    assert encode(BEGIN) == {"begin": True}
    assert encode(SNAPSHOT) == {
        "format": "1",
        "table": "table",
        "lease": LEASE,
        "start": "snapshot",
        "phase": "snapshot",
        "version": -1,
        "at": {"version": "7", "after": SPLIT},
        "plan": {"version": "7", "splits": "3", "digest": "ab" * 32, "splitSize": "100"},
    }
    assert encode(FROM_VERSION)["start"] == "version:3"


@pytest.mark.parametrize("offset", [BEGIN, SNAPSHOT, LOG, WITHIN, FROM_VERSION])
def test_it_is_read_as_it_was_written(offset: Any):
    assert decode(json.loads(json.dumps(encode(offset)))) == offset


def test_the_version_is_all_that_a_sink_behind_it_sees():
    has, reads, has_read = (json.dumps(each) for each in (newest(9), encode(SNAPSHOT), encode(LOG)))
    backlog = Backlog.begin([has], [reads])
    assert backlog.boundaries == {"0/version": 9}
    assert backlog.after([has_read]).reached


def changed(path: str, value: Any) -> dict[str, Any]:
    found = copy.deepcopy(encode(SNAPSHOT))
    *parents, last = path.split(".")
    at = found
    for parent in parents:
        at = at[parent]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return found


@pytest.mark.parametrize(
    "path, value",
    [
        ("format", None),
        ("format", 1),
        ("format", "one"),
        ("table", ""),
        ("table", None),
        ("lease", LEASE[:-1]),
        ("lease", LEASE.upper()),
        ("start", "version:"),
        ("start", "version:3"),
        ("start", "3"),
        ("phase", "snap"),
        ("phase", "log"),
        ("version", 6),
        ("version", "-1"),
        ("version", -1.0),
        ("version", True),
        ("at.version", "8"),
        ("at.version", "07"),
        ("at.version", 7),
        ("at.after", "x"),
        ("at.before", "x"),
        ("plan.version", ""),
        ("plan.splits", "-3"),
        ("plan.digest", "ab"),
        ("plan.digest", ""),
        ("plan.splitSize", "0"),
        ("plan.splitSize", None),
        ("plan", "7"),
        ("more", "x"),
    ],
)
def test_what_is_not_so_is_damaged(path: str, value: Any):
    with pytest.raises(CorruptState, match="new checkpointLocation"):
        decode(changed(path, value))


@pytest.mark.parametrize("value", [{}, {"begin": False}, {"begin": True, "format": "1"}, [], None, "begin", 1])
def test_what_is_no_offset_is_damaged(value: Any):
    with pytest.raises(CorruptState, match="damaged, or none of lakecommit's"):
        decode(value)


def test_a_later_format_is_for_a_later_release():
    with pytest.raises(UnsupportedTable, match=r"offsets of format 2, .* knows format 1"):
        decode(changed("format", "2"))


def test_it_stays_small_for_any_table():
    many = PlanName(2**63 - 1, 2**63 - 1, "ab" * 32, 2**63 - 1)
    long_split = f"{17:020d}/{'x' * 1024}#{'v' * 64}@{100:020d}"
    offset = Offset("table", LEASE, None, Phase.SNAPSHOT, NO_VERSION, At(2**63 - 1, long_split), many)
    assert len(json.dumps(encode(offset))) < 2048
