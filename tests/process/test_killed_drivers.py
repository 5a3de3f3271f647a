"""Drivers that are killed again and again in one stream: every row is in the table once."""

from __future__ import annotations

import pytest

from .evidence import assert_one_epoch_at_a_time
from .kills import MOMENTS, STEPS, killed_at_random_moments, killed_at_steps
from .streams import stream_on_disk, stream_on_s3

pytestmark = pytest.mark.spark


# In `make test` the demo kills a driver on local disk, with epochs pending.
@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_many_times_on_local_disk(start, tmp_path, rng, assert_exactly_once):
    stream = stream_on_disk(tmp_path, files=60)
    killed_at_random_moments(start, stream, rng, kills=20)
    assert_exactly_once(stream)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_of_a_stream_whose_every_epoch_replaces_the_table(start, tmp_path, rng, assert_exactly_once):
    stream = stream_on_disk(tmp_path, files=200)
    killed_at_random_moments(start, stream, rng, kills=10, complete=True)
    assert_exactly_once(stream)
    assert_one_epoch_at_a_time(stream.place)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_at_every_step_of_the_protocol_on_s3(start, tmp_path, rng, place_on_s3, proxy, assert_exactly_once):
    stream = stream_on_s3(tmp_path, 28, place_on_s3, proxy.endpoint)
    kills = [(step, moment) for step in STEPS for moment in MOMENTS]
    rng.shuffle(kills)
    killed_at_steps(start, stream, proxy, kills)
    assert_exactly_once(stream)
