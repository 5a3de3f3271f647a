"""The requests that a driver makes for an epoch, whatever the format: what a proxy has to look for."""

from __future__ import annotations

from collections.abc import Mapping

from tests.spark_log.entries import is_compaction

from .streams import COMPACT_INTERVAL, Stream

_ALIKE = {
    "manifest": r"/writers/0*{epoch}/",
    "data": r"/0*{epoch}-\d+-[0-9a-f]+-\d+\.parquet",
    "seal": r"/seals/0*{epoch}\.avro",
}
# Those that drivers die and stand still at. The log of a Parquet directory has no version that only makes the table:
# its numbers are epochs.
STEPS: Mapping[str, Mapping[str, str]] = {
    "delta": {**_ALIKE, "version": r"_delta_log/0*{version}\.json"},
    "parquet": {**_ALIKE, "version": r"_spark_metadata/{epoch}$", "compact": r"_spark_metadata/{epoch}\.compact$"},
}
_CREATION = {"delta": r"_delta_log/0{20}\.json", "parquet": r"_spark_metadata/\.lakecommit\.json"}


def creation(stream: Stream) -> str:
    """What makes the table."""
    return _CREATION[stream.table_format]


def step_of(stream: Stream, step: str, epoch: int) -> str:
    """A request of this epoch. `version` is the one that commits it, if no other epoch is committed with it."""
    if step == "version" and stream.table_format == "parquet" and is_compaction(epoch, COMPACT_INTERVAL):
        step = "compact"
    return STEPS[stream.table_format][step].format(epoch=epoch, version=epoch + 1)


def next_with(stream: Stream, step: str, epoch: int) -> tuple[int, str]:
    """The first epoch, from this one on, that has such a request, and what the request looks like."""
    if stream.table_format == "parquet":
        while step in ("version", "compact") and is_compaction(epoch, COMPACT_INTERVAL) != (step == "compact"):
            epoch += 1
    return epoch, step_of(stream, step, epoch)
