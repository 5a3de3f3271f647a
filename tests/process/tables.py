"""What a test asks about the table of a stream, whatever its format."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from tests.spark_log.reader import newest_number

from . import directories, evidence
from .streams import Stream

# Looks at the table, again and again while a driver runs and after it has died. Raises where something is wrong.
Look = Callable[[], None]

_EXACTLY_ONCE: Mapping[str, Callable[[SparkSession, Stream], None]] = {
    "delta": evidence.assert_exactly_once,
    "parquet": directories.assert_exactly_once,
}


def nothing() -> None:
    pass


def assert_exactly_once(spark: SparkSession, stream: Stream) -> None:
    """The stream is over: every row of its input is in the table once, as Spark reads it, too, and nothing else is."""
    _EXACTLY_ONCE[stream.table_format](spark, stream)


def look_at(stream: Stream) -> Look:
    """What is in a Parquet directory is a prefix of whole epochs at every moment, as Spark's readers find it."""
    return directories.Reader(stream).look if stream.table_format == "parquet" else nothing


def committed(stream: Stream) -> int:
    """How many epochs the table holds."""
    if stream.table_format == "parquet":
        return newest_number(directories.log_of(stream.place)) + 1
    log = evidence.read_log(stream.place)
    return 1 + max((action["txn"]["version"] for version in log for action in version if "txn" in action), default=-1)
