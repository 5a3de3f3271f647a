"""Executors that are killed in the middle of an epoch, and attempts that lose to a speculative one."""

from __future__ import annotations

import pytest

from .evidence import Objects
from .faulty_proxy import Fault
from .kills import MOMENTS
from .streams import stream_on_s3

pytestmark = pytest.mark.spark

HOSTS = ("127.0.0.1", "127.0.0.2")
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.efficiency.enabled": "false",
    "spark.task.maxFailures": "20",
    # An executor that is killed costs what it ran, not the stream.
    "spark.excludeOnFailure.enabled": "false",
}
# Whoever uploads waits for as long as a test lets it stand still.
OPTIONS = {"store.read_timeout": "300s"}


def data_of(epoch: int, task: int) -> str:
    return rf"/0*{epoch}-{task}-[0-9a-f]+-\d+\.parquet"


# In `make test` tasks fail and are run again in tests/spark/test_retried_tasks.py, and the simulation has stragglers.
@pytest.mark.soak
def test_an_executor_killed_and_a_straggler_overtaken(
    start, tmp_path, place_on_s3, proxy, table_format, assert_exactly_once
):
    """In epoch 1 an upload stands still while both executors are killed, one after the other.

    In epoch 3 an upload stands still until another attempt of its task has won and the epoch is in the table, and
    lands then.
    """
    stream = stream_on_s3(tmp_path, 5, place_on_s3, proxy.endpoint, table_format)
    held = proxy.rule("PUT", data_of(1, 0), Fault.HELD_BEFORE)
    straggler = proxy.rule("PUT", data_of(3, 1), Fault.HELD_LATE)
    driver = start(stream.job(hosts=HOSTS, settings=SETTINGS, options=OPTIONS))
    driver.wait_until(held.met.is_set, "the upload of epoch 1")
    for pid in driver.executors():
        driver.kill_executor(pid)
    held.let_go.set()
    driver.wait_until(lambda: 3 in driver.epochs, "epoch 3")
    assert straggler.met.is_set()
    straggler.let_go.set()
    driver.finish()
    assert straggler.done.wait(240)
    attempts = [path for path in Objects.of(stream.place).manifests if f"/writers/{3:020d}/1-" in path]
    assert len(attempts) > 1, "a speculative attempt has overtaken the one that stood still"
    assert_exactly_once(stream)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_many_executors_killed_in_one_stream(
    start, tmp_path, rng, place_on_s3, proxy, table_format, assert_exactly_once
):
    """Ten kills, each while an upload of another epoch stands still."""
    stream = stream_on_s3(tmp_path, 24, place_on_s3, proxy.endpoint, table_format)
    epochs = range(2, 22, 2)
    rules = {epoch: proxy.rule("PUT", data_of(epoch, rng.randrange(2)), rng.choice(MOMENTS)) for epoch in epochs}
    driver = start(stream.job(hosts=HOSTS, settings=SETTINGS, options=OPTIONS))
    for epoch, rule in rules.items():
        driver.wait_until(rule.met.is_set, f"the upload of epoch {epoch}")
        driver.wait_until(driver.executors, "an executor")
        driver.kill_executor(rng.choice(driver.executors()))
        rule.let_go.set()
    driver.finish()
    assert all(rule.done.wait(240) for rule in rules.values())
    assert_exactly_once(stream)
