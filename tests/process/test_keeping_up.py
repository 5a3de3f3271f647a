"""Drivers that are killed with epochs pending: in a commit of many of them, with some on local disk, in backlog."""

from __future__ import annotations

import json

import pytest

from .evidence import Objects, read_log
from .faulty_proxy import Fault
from .kills import STEPS
from .streams import stream_on_disk, stream_on_s3

pytestmark = pytest.mark.spark


@pytest.mark.soak
def test_killed_in_a_grouped_commit_with_pending_epochs_on_disk(
    start, tmp_path, place_on_s3, proxy, assert_exactly_once
):
    """Version 1 stands still until four more epochs are pending. Version 2 would hold these, and is not created.

    In `make test` a driver is killed with epochs pending in `test_pending_epochs`; that a commit holds several epochs
    with some from local disk, and that a restart commits them, is in `unit/committing/test_back_pressure`; and the
    simulation kills drivers whose segments are on disk in the middle of such commits.
    """
    stream = stream_on_s3(tmp_path, 8, place_on_s3, proxy.endpoint)
    first, grouped = (
        proxy.rule("PUT", STEPS["version"].format(version=version), moment)
        for version, moment in ((1, Fault.HELD_LATE), (2, Fault.HELD_BEFORE))
    )
    options = {"commitWait": "0", "store.read_timeout": "300s"}
    # Two pending epochs are more than this memory takes.
    settings = {"spark.lakecommit.committerMemory": "2k"}
    driver = start(stream.job(options=options, settings=settings))
    driver.wait_until(lambda: first.met.is_set() and sealed(stream) >= 5, "four pending epochs")
    first.let_go.set()
    driver.wait_until(grouped.met.is_set, "the grouped commit")
    assert driver.segments() > 0, "some of what is pending is on local disk"
    driver.kill()
    grouped.let_go.set()
    assert grouped.done.wait(240)
    begin, end = epochs_of(grouped.body)
    assert begin == 1
    assert end >= 4, "the commit that was under way held several epochs"
    assert len(read_log(stream.place)) == 2, "the table and epoch 0: all others are pending"
    start(stream.job(options=options, settings=settings)).finish()
    assert_exactly_once(stream)
    assert len(read_log(stream.place)) - 1 < stream.newest_epoch, "epochs shared snapshots"


@pytest.mark.soak
def test_killed_in_backlog(start, tmp_path, assert_exactly_once):
    stream = stream_on_disk(tmp_path, files=10)
    options = {"backlogInterval": "1h"}
    driver = start(stream.job(options=options))
    driver.wait_until(lambda: sealed(stream) >= 4, "four seals")
    driver.kill()
    assert len(Objects.of(stream.place).versions) == 1, "nothing but the table itself: an interval is an hour"
    start(stream.job(options=options)).finish()
    assert len(read_log(stream.place)) <= 3, "what was pending at the restart, and what ended the backlog"
    assert_exactly_once(stream)


def sealed(stream) -> int:
    return Objects.of(stream.place).newest_seal + 1


def epochs_of(version: bytes) -> tuple[int, int]:
    """The first and the last epoch of a version of the one query."""
    ((begin, end),) = json.loads(version.splitlines()[0])["commitInfo"]["lakecommit"]["epochs"].values()
    return begin, end
