"""A driver dies with epochs sealed that the table does not hold yet: its successor commits what was sealed."""

from __future__ import annotations

import pytest

from lakecommit.state import layout

from .evidence import Objects
from .faulty_proxy import Fault
from .kills import WAITING
from .steps import step_of
from .streams import ROWS_A_FILE, stream_on_s3
from .tables import committed

# In one session: tests/spark/test_restarts.py. The demo kills a driver with epochs pending in `make test`, too; and for
# both formats tests/crash has a process die with an epoch that is sealed and not committed.
pytestmark = [pytest.mark.spark, pytest.mark.soak]
PENDING = 2
BEHIND = {"commitWait": "0", **WAITING}


def test_a_successor_with_other_partitions_commits_what_was_sealed(
    start, tmp_path, place_on_s3, proxy, table_format, assert_exactly_once
):
    """The first driver never creates the version of epoch 2."""
    stream = stream_on_s3(tmp_path, 5, place_on_s3, proxy.endpoint, table_format)
    version = proxy.rule("PUT", step_of(stream, "version", PENDING), Fault.HELD_BEFORE)
    first = start(stream.job(partitions=2, options=WAITING))
    first.wait_until(version.met.is_set, f"the version of epoch {PENDING}")
    first.kill()
    version.let_go.set()
    assert len(Objects.of(stream.place).seals) == committed(stream) + 1 == PENDING + 1, "one epoch is pending"
    staged = manifests_of(stream, PENDING)
    start(stream.job(partitions=5)).finish()
    assert manifests_of(stream, PENDING) == staged, "its rows were not written again"
    assert {layout.parse_manifest_path(path)[0].task for path in manifests_of(stream, PENDING + 1)} > {0, 1}
    assert_exactly_once(stream)


def test_the_input_of_pending_epochs_is_not_read_again(
    start, tmp_path, place_on_s3, proxy, table_format, assert_exactly_once
):
    """The first driver dies in the tasks of epoch 4 with all epochs before it pending; the next has more partitions."""
    stream = stream_on_s3(tmp_path, 6, place_on_s3, proxy.endpoint, table_format)
    killed_behind(start, stream, proxy, "data", Fault.HELD_BEFORE)
    assert sealed(stream) == spark_finished(stream) == {0, 1, 2, 3}
    staged = [manifests_of(stream, epoch) for epoch in range(4)]
    second = start(stream.job(options=BEHIND, partitions=5)).finish()
    assert second.epochs == {4: ROWS_A_FILE, 5: ROWS_A_FILE}, "none of the sealed epochs was run, no row of them read"
    assert [manifests_of(stream, epoch) for epoch in range(4)] == staged
    assert {layout.parse_manifest_path(path)[0].task for path in manifests_of(stream, 5)} > {0, 1}
    assert_exactly_once(stream)


@pytest.mark.parametrize("partitions", [2, None])
def test_the_input_of_an_epoch_that_spark_has_not_logged_is_not_read_again(
    start, tmp_path, place_on_s3, proxy, partitions, table_format, assert_exactly_once
):
    """The first driver dies with the seal of epoch 4 just made, which Spark has not heard of, and all pending."""
    stream = stream_on_s3(tmp_path, 6, place_on_s3, proxy.endpoint, table_format)
    killed_behind(start, stream, proxy, "seal", Fault.HELD_AFTER, partitions)
    assert spark_finished(stream) == {0, 1, 2, 3}
    assert sealed(stream) == {0, 1, 2, 3, 4}
    staged = manifests_of(stream, 4)
    second = start(stream.job(options=BEHIND, partitions=partitions)).finish()
    assert second.epochs == {5: ROWS_A_FILE}
    assert manifests_of(stream, 4) == staged, "its rows were not written again"
    assert_exactly_once(stream)


def killed_behind(start, stream, proxy, step: str, moment: Fault, partitions: int | None = 2) -> None:
    """A driver is killed while a request of epoch 4 stands still. It has made the table, and committed no epoch."""
    version = proxy.rule("PUT", step_of(stream, "version", 0), Fault.HELD_BEFORE)
    last = proxy.rule("PUT", step_of(stream, step, 4), moment)
    driver = start(stream.job(options=BEHIND, partitions=partitions))
    driver.wait_until(lambda: version.met.is_set() and last.met.is_set(), f"the {step} of epoch 4")
    driver.kill()
    for rule in (version, last):
        rule.let_go.set()
        assert rule.done.wait(240)
    assert committed(stream) == 0


def sealed(stream) -> set[int]:
    return {layout.parse_seal_path(path)[1] for path in Objects.of(stream.place).seals}


def spark_finished(stream) -> set[int]:
    """The epochs that Spark's commit log has."""
    return {int(path.name) for path in (stream.checkpoint / "commits").iterdir() if path.name.isdigit()}


def manifests_of(stream, epoch: int) -> set[str]:
    paths = Objects.of(stream.place).manifests
    return {path for path in paths if layout.parse_manifest_path(path)[0].epoch == epoch}
