"""A driver dies with an epoch sealed that no version holds yet: its successor commits what was sealed."""

from __future__ import annotations

import pytest

from lakecommit.state import layout

from .evidence import Objects, assert_exactly_once, read_log
from .faulty_proxy import Fault
from .streams import stream_on_s3

pytestmark = pytest.mark.spark
PENDING = 2


def test_a_successor_with_other_partitions_commits_what_was_sealed(start, tmp_path, place_on_s3, proxy):
    """Version 3 would hold epoch 2, and is never created by the first driver."""
    stream = stream_on_s3(tmp_path, 5, place_on_s3, proxy.endpoint)
    version = proxy.rule("PUT", rf"_delta_log/0*{PENDING + 1}\.json", Fault.HELD_BEFORE)
    first = start(stream.job(partitions=2))
    first.wait_until(version.met.is_set, f"the version of epoch {PENDING}")
    first.kill()
    version.let_go.set()
    assert len(Objects.of(stream.place).seals) == len(read_log(stream.place)) == PENDING + 1, "one epoch is pending"
    staged = manifests_of(stream, PENDING)
    start(stream.job(partitions=5)).finish()
    assert manifests_of(stream, PENDING) == staged, "its rows were not written again"
    assert {layout.parse_manifest_path(path)[0].task for path in manifests_of(stream, PENDING + 1)} > {0, 1}
    assert_exactly_once(stream)


def manifests_of(stream, epoch: int) -> set[str]:
    paths = Objects.of(stream.place).manifests
    return {path for path in paths if layout.parse_manifest_path(path)[0].epoch == epoch}
