"""Short histories of streams from Kafka. Each gives its runs, with the epochs that the committer was told about.

`on_driver` runs a function of `driver` where Spark and Kafka are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.unit.progress.epochs import Epoch

from . import driver

OnDriver = Callable[..., Any]
Runs = list[list[Epoch]]

AVAILABLE_NOW = {"availableNow": True}
ALWAYS = {"processingTime": "0 seconds"}
# The first epoch of a run comes at once.
ONE_EPOCH = {"processingTime": "1 hour"}


def available_now(on_driver: OnDriver, directory: str) -> Runs:
    _topic(on_driver, "now-a", 100, 20, 0)
    _topic(on_driver, "now-b", 40, 40)
    on_driver(driver.start, directory, _source("now-a,now-b", 50), trigger=AVAILABLE_NOW)
    epochs = on_driver(driver.finish)
    assert on_driver(driver.rows, directory) == 200
    return [epochs]


def more_comes_later(on_driver: OnDriver, directory: str) -> Runs:
    _topic(on_driver, "later", 60, 60)
    on_driver(driver.start, directory, _source("later", 40), trigger=ALWAYS)
    on_driver(driver.epochs, 1)
    on_driver(driver.produce, "later", 60, 60)
    while on_driver(driver.epochs, 1)[-1].ends() != {"later": {"0": 120, "1": 120}}:
        pass
    epochs = on_driver(driver.stop)
    assert on_driver(driver.rows, directory) == 240
    return [epochs]


def partition_added(on_driver: OnDriver, directory: str) -> Runs:
    _topic(on_driver, "grows", 90)
    on_driver(driver.start, directory, _source("grows", 30), trigger=ALWAYS)
    on_driver(driver.epochs, 1)
    on_driver(driver.add_partitions, "grows", 2)
    on_driver(driver.produce, "grows", 0, 5000)

    def ends() -> Any:
        return on_driver(driver.epochs, 1)[-1].ends()["grows"]

    while ends()["0"] < 90 or "1" not in ends():
        pass
    return [on_driver(driver.stop, idle=False)]


def no_limit(on_driver: OnDriver, directory: str) -> Runs:
    _topic(on_driver, "whole", 30, 30)
    return [_one_epoch(on_driver, directory, _source("whole"))]


def restarts(on_driver: OnDriver, directory: str) -> Runs:
    _topic(on_driver, "restart", 50, 50)
    runs = []
    for _ in range(4):
        runs.append(_one_epoch(on_driver, directory, _source("restart", 40)))
        on_driver(driver.produce, "restart", 50, 50)
    return runs


def repeated_epoch(on_driver: OnDriver, directory: str) -> Runs:
    _topic(on_driver, "repeat", 100)
    first = _one_epoch(on_driver, directory, _source("repeat", 40), with_state=True)
    on_driver(driver.forget_last_commit, directory)
    on_driver(driver.start, directory, _source("repeat", 40), trigger=AVAILABLE_NOW, with_state=True)
    again = on_driver(driver.finish)
    assert on_driver(driver.rows, directory) == 100
    return [first, again]


def topic_created_again(on_driver: OnDriver, directory: str) -> Runs:
    _topic(on_driver, "again", 100)
    _topic(on_driver, "stays", 100)
    source = _source("again,stays", 20, failOnDataLoss="false")
    first = _one_epoch(on_driver, directory, source)
    on_driver(driver.delete_topic, "again")
    _topic(on_driver, "again", 30)
    return [first, _one_epoch(on_driver, directory, source)]


def topic_deleted(on_driver: OnDriver, directory: str) -> Runs:
    _topic(on_driver, "gone-a", 100)
    _topic(on_driver, "gone-b", 100)
    source = {"subscribePattern": "gone-.*", "maxOffsetsPerTrigger": "20", "failOnDataLoss": "false"}
    first = _one_epoch(on_driver, directory, source)
    on_driver(driver.delete_topic, "gone-a")
    return [first, _one_epoch(on_driver, directory, source)]


def two_sources(on_driver: OnDriver, directory: str) -> Runs:
    _topic(on_driver, "left", 30)
    _topic(on_driver, "right", 90)
    on_driver(driver.start, directory, _source("left", 30), _source("right", 30), trigger=AVAILABLE_NOW)
    epochs = on_driver(driver.finish)
    assert on_driver(driver.rows, directory) == 120
    return [epochs]


STORIES: Mapping[str, Callable[[OnDriver, str], Runs]] = {
    each.__name__: each
    for each in (
        available_now,
        more_comes_later,
        partition_added,
        no_limit,
        restarts,
        repeated_epoch,
        topic_created_again,
        topic_deleted,
        two_sources,
    )
}


def _source(topics: str, limit: int | None = None, **options: str) -> dict[str, str]:
    limits = {} if limit is None else {"maxOffsetsPerTrigger": str(limit)}
    return {"subscribe": topics, **limits, **options}


def _topic(on_driver: OnDriver, name: str, *counts: int) -> None:
    """A topic with as many partitions as there are counts, and so many records in each."""
    on_driver(driver.create_topic, name, len(counts))
    on_driver(driver.produce, name, *counts)


def _one_epoch(on_driver: OnDriver, directory: str, source: dict[str, str], *, with_state: bool = False) -> list[Epoch]:
    on_driver(driver.start, directory, source, trigger=ONE_EPOCH, with_state=with_state)
    on_driver(driver.epochs, 1)
    epochs: list[Epoch] = on_driver(driver.stop)
    assert len(epochs) == 1
    return epochs
