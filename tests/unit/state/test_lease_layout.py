"""Names that other releases have put, and that must mean the same for ever: a file that only ever grows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lakecommit.state import lease_layout
from lakecommit.state.lease_layout import CutName, LeaseName

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "lease-names-1.json").read_text())
ID = f"{0xA:032x}"


@pytest.mark.parametrize("path", GOLDEN["leases"])
def test_leases(path: str) -> None:
    name = lease_layout.parse_lease(path)
    assert name is not None
    assert [name.version, name.ttl_s, name.lease, name.unique] == GOLDEN["leases"][path]
    assert name.path == path


@pytest.mark.parametrize("path", GOLDEN["cuts"])
def test_cuts(path: str) -> None:
    name = lease_layout.parse_cut(path)
    assert name is not None
    assert [name.version, name.run] == GOLDEN["cuts"][path]
    assert name.path == path


@pytest.mark.parametrize("path", GOLDEN["runs"])
def test_intents_and_clocks(path: str) -> None:
    run = GOLDEN["runs"][path]
    assert lease_layout.parse_run(path) == run
    assert path in (lease_layout.intent_path(run), lease_layout.clock_path(run))


@pytest.mark.parametrize("path", GOLDEN["swept"])
def test_swept(path: str) -> None:
    assert lease_layout.parse_swept(path) == GOLDEN["swept"][path]
    assert lease_layout.swept_path(GOLDEN["swept"][path]) == path


@pytest.mark.parametrize("path", GOLDEN["unknown"])
def test_what_nobody_understands(path: str) -> None:
    for parse in (lease_layout.parse_lease, lease_layout.parse_cut, lease_layout.parse_run, lease_layout.parse_swept):
        assert parse(path) is None


@pytest.mark.parametrize(
    "name",
    [
        LeaseName(-1, 60, ID, ID),
        LeaseName(2**63, 60, ID, ID),
        LeaseName(1, 0, ID, ID),
        LeaseName(1, lease_layout.MAX_TTL_S + 1, ID, ID),
        LeaseName(1, 60, "A" * 32, ID),
        LeaseName(1, 60, ID, "../x"),
        CutName(-1, ID),
        CutName(1, "x"),
    ],
)
def test_what_cannot_be_meant_is_not_written(name: Any) -> None:
    with pytest.raises(ValueError, match=r"out of range|a lease of|not 32"):
        _ = name.path
