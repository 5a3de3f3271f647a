"""Drivers that are killed again and again in one stream: every row is in the table once.

Into a Parquet directory, what Spark's readers find in it is a prefix of whole epochs at every moment, too.
"""

from __future__ import annotations

import pytest

from .evidence import assert_one_epoch_at_a_time
from .kills import MOMENTS, killed_at_random_moments, killed_at_steps
from .steps import STEPS
from .streams import stream_on_disk, stream_on_s3
from .tables import look_at

pytestmark = pytest.mark.spark


# In `make test` the demo kills a driver on local disk, with epochs pending. Of a Parquet directory tests/crash has a
# process die at every single store call, and tests/spark/test_parquet.py starts its queries again.
@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_times_on_local_disk(start, tmp_path, rng, table_format, assert_exactly_once):
    stream = stream_on_disk(tmp_path, 60, table_format)
    killed_at_random_moments(start, stream, rng, 20, look_at(stream))
    assert_exactly_once(stream)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_of_a_stream_whose_every_epoch_replaces_the_table(start, tmp_path, rng, assert_exactly_once):
    stream = stream_on_disk(tmp_path, files=200)
    killed_at_random_moments(start, stream, rng, kills=10, complete=True)
    assert_exactly_once(stream)
    assert_one_epoch_at_a_time(stream.place)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_at_every_step_of_the_protocol_on_s3(
    start, tmp_path, rng, place_on_s3, proxy, table_format, assert_exactly_once
):
    steps, (more, files) = STEPS[table_format], (0, 28) if table_format == "delta" else (5, 70)
    stream = stream_on_s3(tmp_path, files, place_on_s3, proxy.endpoint, table_format)
    kills = [(step, moment) for step in steps for moment in MOMENTS]
    kills += [(rng.choice([*steps]), rng.choice(MOMENTS)) for _ in range(more)]
    rng.shuffle(kills)
    killed_at_steps(start, stream, proxy, kills, look_at(stream))
    assert_exactly_once(stream)
