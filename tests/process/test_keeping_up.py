"""Drivers that are killed with epochs pending: in a commit of many of them, with some on local disk, in backlog."""

from __future__ import annotations

import json

import pytest

from .evidence import Objects, read_log
from .faulty_proxy import Fault
from .steps import step_of
from .streams import stream_on_disk, stream_on_s3
from .tables import committed, look_at

pytestmark = pytest.mark.spark
# The epoch whose request stands still while a group is committed. A version of Delta has the whole group; a Parquet
# directory has an entry for each epoch, and the group is there in part.
STANDS_STILL = {"delta": 1, "parquet": 2}


@pytest.mark.soak
def test_killed_in_a_grouped_commit_with_pending_epochs_on_disk(
    start, tmp_path, place_on_s3, proxy, table_format, assert_exactly_once
):
    """The first epoch's commit stands still until four more epochs are pending. These are committed together, and the
    driver dies in that.

    In `make test` a driver is killed with epochs pending in `test_pending_epochs`; that a commit holds several epochs
    with some from local disk, and that a restart commits them, is in `unit/committing/test_back_pressure`; and the
    simulation kills drivers whose segments are on disk in the middle of such commits.
    """
    stream = stream_on_s3(tmp_path, 8, place_on_s3, proxy.endpoint, table_format)
    still = STANDS_STILL[table_format]
    first, grouped = (
        proxy.rule("PUT", step_of(stream, "version", epoch), moment)
        for epoch, moment in ((0, Fault.HELD_LATE), (still, Fault.HELD_BEFORE))
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
    assert committed(stream) == still, "all others are pending"
    if table_format == "delta":
        begin, end = epochs_of(grouped.body)
        assert begin == 1
        assert end >= 4, "the commit that was under way held several epochs"
    look = look_at(stream)
    look()
    start(stream.job(options=options, settings=settings)).finish(look)
    assert_exactly_once(stream)
    if table_format == "delta":
        assert len(read_log(stream.place)) - 1 < stream.newest_epoch, "epochs shared snapshots"


@pytest.mark.soak
def test_killed_in_backlog(start, tmp_path, assert_exactly_once):
    """A Parquet directory gets its entries at once, also in backlog: tests/unit/formats/parquet/test_pace.py."""
    stream = stream_on_disk(tmp_path, files=10)
    options = {"backlogInterval": "1h"}
    driver = start(stream.job(options=options))
    driver.wait_until(lambda: sealed(stream) >= 4, "four seals")
    driver.kill()
    assert committed(stream) == 0, "nothing but the table itself: an interval is an hour"
    start(stream.job(options=options)).finish()
    assert len(read_log(stream.place)) <= 3, "what was pending at the restart, and what ended the backlog"
    assert_exactly_once(stream)


def sealed(stream) -> int:
    return Objects.of(stream.place).newest_seal + 1


def epochs_of(version: bytes) -> tuple[int, int]:
    """The first and the last epoch of a version of the one query."""
    ((begin, end),) = json.loads(version.splitlines()[0])["commitInfo"]["lakecommit"]["epochs"].values()
    return begin, end
