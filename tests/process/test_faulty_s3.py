"""A stream through an S3 that loses, refuses and delays requests."""

from __future__ import annotations

import pytest

from .evidence import Objects
from .faulty_proxy import SILENCE_AND_REFUSALS, Chaos, Fault, faulty_proxy
from .kills import killed_at_random_moments
from .streams import stream_on_s3

# Without Spark: tests/unit/storage, through the same proxy test_faulty_proxy.py, and every step in the simulation.
pytestmark = [pytest.mark.spark, pytest.mark.soak]


def test_answers_that_are_lost_and_refusals_at_every_step(start, tmp_path, place_on_s3, proxy, assert_exactly_once):
    """Each is noticed as one's own work or tried again: no task fails and nothing is written twice."""
    stream = stream_on_s3(tmp_path, 8, place_on_s3, proxy.endpoint)
    rules = [
        proxy.rule("PUT", r"_delta_log/0{20}\.json", Fault.LOST),
        proxy.rule("PUT", r"/writers/0*1/", Fault.LOST),
        proxy.rule("PUT", r"/0{19}2-\d+-[0-9a-f]+-\d+\.parquet", Fault.LOST),
        proxy.rule("PUT", r"/seals/0*3\.avro", Fault.LOST),
        proxy.rule("PUT", r"_delta_log/0*5\.json", Fault.LOST),
        proxy.rule("PUT", r"/seals/0*5\.avro", Fault.CONFLICT),
        proxy.rule("PUT", r"_delta_log/0*6\.json", Fault.CONFLICT, times=2),
        proxy.rule("PUT", r"/seals/0*6\.avro", Fault.INTERNAL_ERROR),
        proxy.rule("GET", r"/seals/0*6\.avro", Fault.SLOW_DOWN),
        proxy.rule("PUT", r"_delta_log/0*7\.json", Fault.RESET),
        proxy.rule("PUT", r"/writers/0*7/", Fault.TOO_MANY),
    ]
    start(stream.job()).finish()
    assert [rule.pattern.pattern for rule in rules if not rule.met.is_set()] == []
    assert len(Objects.of(stream.place).manifests) == 2 * stream.files
    assert_exactly_once(stream)


def test_answers_that_never_come_and_refusals_by_chance(
    start, tmp_path, seed, rng, place_on_s3, local_s3, assert_exactly_once
):
    """`benchmarks/faulty_s3.py` says how long that takes."""
    chaos = Chaos(seed, rate=0.1, faults=SILENCE_AND_REFUSALS)
    with faulty_proxy(local_s3.endpoint, chaos) as proxy:
        stream = stream_on_s3(tmp_path, 40, place_on_s3, proxy.endpoint)
        driver = start(stream.job())
        driver.wait_until(lambda: 19 in driver.epochs, "half of the epochs")
        driver.finish()
        print({fault.name: times for fault, times in proxy.met.items()})
        assert proxy.met[Fault.UNANSWERED] > 0
    assert_exactly_once(stream)


def test_faults_by_chance(start, tmp_path, seed, rng, place_on_s3, local_s3, assert_exactly_once):
    with faulty_proxy(local_s3.endpoint, Chaos(seed, rate=0.25)) as proxy:
        stream = stream_on_s3(tmp_path, 20, place_on_s3, proxy.endpoint)
        start(stream.job()).finish()
        print({fault.name: times for fault, times in proxy.met.items()})
        assert sum(proxy.met.values()) > stream.files
    assert_exactly_once(stream)


@pytest.mark.timeout(1800)
def test_faults_by_chance_and_killed_drivers(start, tmp_path, seed, rng, place_on_s3, local_s3, assert_exactly_once):
    with faulty_proxy(local_s3.endpoint, Chaos(seed, rate=0.25)) as proxy:
        stream = stream_on_s3(tmp_path, 30, place_on_s3, proxy.endpoint)
        killed_at_random_moments(start, stream, rng, kills=6)
    assert_exactly_once(stream)
