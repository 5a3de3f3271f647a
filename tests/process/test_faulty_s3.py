"""A stream through an S3 that loses, refuses and delays requests."""

from __future__ import annotations

import pytest

from .broken_steps import EPOCHS, assert_all_met, break_every_step
from .evidence import Objects
from .faulty_proxy import SILENCE_AND_REFUSALS, Chaos, Fault, faulty_proxy
from .kills import killed_at_random_moments
from .streams import stream_on_s3
from .tables import look_at

# Without Spark: tests/unit/storage, test_faulty_committers.py through the same proxy, and every step in the simulation.
pytestmark = [pytest.mark.spark, pytest.mark.soak]


def test_answers_that_are_lost_and_refusals_at_every_step(
    start, tmp_path, place_on_s3, proxy, table_format, assert_exactly_once
):
    """Each is noticed as one's own work or tried again: no task fails and nothing is written twice."""
    stream = stream_on_s3(tmp_path, EPOCHS, place_on_s3, proxy.endpoint, table_format)
    rules = break_every_step(proxy, stream)
    start(stream.job()).finish()
    assert_all_met(rules)
    assert len(Objects.of(stream.place).manifests) == 2 * stream.files
    assert_exactly_once(stream)


def test_answers_that_never_come_and_refusals_by_chance(
    start, tmp_path, seed, rng, place_on_s3, local_s3, table_format, assert_exactly_once
):
    """`benchmarks/faulty_s3.py` says how long that takes."""
    chaos = Chaos(seed, rate=0.1, faults=SILENCE_AND_REFUSALS)
    with faulty_proxy(local_s3.endpoint, chaos) as proxy:
        stream = stream_on_s3(tmp_path, 40, place_on_s3, proxy.endpoint, table_format)
        driver = start(stream.job())
        driver.wait_until(lambda: 19 in driver.epochs, "half of the epochs")
        driver.finish()
        print({fault.name: times for fault, times in proxy.met.items()})
        assert proxy.met[Fault.UNANSWERED] > 0
    assert_exactly_once(stream)


def test_faults_by_chance(start, tmp_path, seed, rng, place_on_s3, local_s3, table_format, assert_exactly_once):
    with faulty_proxy(local_s3.endpoint, Chaos(seed, rate=0.25)) as proxy:
        stream = stream_on_s3(tmp_path, 20, place_on_s3, proxy.endpoint, table_format)
        start(stream.job()).finish()
        print({fault.name: times for fault, times in proxy.met.items()})
        assert sum(proxy.met.values()) > stream.files
    assert_exactly_once(stream)


@pytest.mark.timeout(1800)
def test_faults_by_chance_and_killed_drivers(
    start, tmp_path, seed, rng, place_on_s3, local_s3, table_format, assert_exactly_once
):
    with faulty_proxy(local_s3.endpoint, Chaos(seed, rate=0.25)) as proxy:
        stream = stream_on_s3(tmp_path, 30, place_on_s3, proxy.endpoint, table_format)
        killed_at_random_moments(start, stream, rng, 6, look_at(stream))
    assert_exactly_once(stream)
