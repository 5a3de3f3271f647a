"""Committers and tasks without Spark through an S3 that loses, refuses and delays requests.

What drivers have to do with such an S3 is in `test_faulty_s3.py`, and fails for the same reasons.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.lake import SETTINGS
from tests.lake.directory import LAKES

from .broken_steps import EPOCHS, assert_all_met, break_every_step
from .faulty_proxy import Chaos, faulty_proxy
from .streams import FORMAT_OPTIONS, Stream

TASKS = 2


@pytest.fixture
def stream(tmp_path, place_on_s3, table_format):
    return Stream(tmp_path, place_on_s3, {}, table_format)


async def written(stream, endpoint: str) -> None:
    """Epochs of one query, the last of them by another committer; every row is in the table once."""
    settings = replace(SETTINGS, properties=FORMAT_OPTIONS[stream.table_format])
    options = {**stream.place.store_options, "endpoint": endpoint}
    lake = replace(LAKES[stream.table_format].at(stream.place.location, options=options), settings=settings)
    committer = lake.committer()
    for epoch in range(EPOCHS):
        if epoch == EPOCHS - 1:
            committer = lake.committer()
        await lake.epoch(committer, epoch, *([TASKS * epoch + task] for task in range(TASKS)))
    await committer.drain()
    assert await lake.ids() == list(range(TASKS * EPOCHS))
    assert await lake.orphans() == []


def test_answers_that_are_lost_and_refusals_at_every_step(stream, proxy):
    rules = break_every_step(proxy, stream)
    asyncio.run(written(stream, proxy.endpoint))
    assert_all_met(rules)


def test_faults_by_chance(stream, seed, rng, local_s3):
    with faulty_proxy(local_s3.endpoint, Chaos(seed, rate=0.25, longest_delay_s=0.02)) as proxy:
        asyncio.run(written(stream, proxy.endpoint))
        print({fault.name: times for fault, times in proxy.met.items()})
        assert sum(proxy.met.values()) > EPOCHS
