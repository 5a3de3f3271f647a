"""Drivers that are killed with epochs pending: in a commit of many of them, with some on local disk, in backlog."""

from __future__ import annotations

import pytest

from .evidence import Objects, assert_exactly_once, read_log
from .streams import stream_on_disk, stream_on_s3

pytestmark = pytest.mark.spark


@pytest.fixture
def slow_versions(local_s3, place_on_s3):
    """Called, versions of the table take so long that epochs gather; all other requests stay quick."""
    table = place_on_s3.location.rpartition("/")[2]
    yield lambda: local_s3.set_slow({f"{table}/_delta_log/": 3000})
    local_s3.set_slow({})


def test_killed_in_a_grouped_commit_with_pending_epochs_on_disk(start, tmp_path, local_s3, place_on_s3, slow_versions):
    stream = stream_on_s3(tmp_path, 10, place_on_s3, local_s3.endpoint)
    # Two pending epochs are more than this.
    options = {"commitWait": "0", "committerMemory": "2k"}
    driver = start(stream.job(options=options))
    driver.wait_until(lambda: Objects.of(stream.place).versions, "the table")
    slow_versions()
    driver.wait_until(lambda: pending(stream) >= 4, "four pending epochs")
    driver.kill()
    local_s3.set_slow({})
    start(stream.job(options=options)).finish()
    assert_exactly_once(stream)
    assert len(read_log(stream.place)) - 1 < stream.newest_epoch, "epochs shared snapshots"


@pytest.mark.soak
def test_killed_in_backlog(start, tmp_path):
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


def pending(stream) -> int:
    """Sealed epochs that no version has, if each version has but one; there may be fewer."""
    found = Objects.of(stream.place)
    return found.newest_seal + 1 - max(0, len(found.versions) - 1)
