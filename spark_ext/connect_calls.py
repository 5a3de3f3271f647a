"""The writers of Spark Connect sessions, whose driver is another process: their settings are in the writer objects.

Imported only if there is such a session: pyspark needs packages for it that others do not have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from pyspark.errors.exceptions.connect import PythonException
from pyspark.sql.connect.readwriter import DataFrameWriter, DataFrameWriterV2
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.streaming.readwriter import DataStreamWriter

from lakecommit.spark_ext.driver_calls import OWN_ERRORS, WriterCall, by_name, refuse_other_ways, wrap

# What a worker sent stands between a line of pyspark's with the beginning of one of Spark's, and Spark's code.
_SAID = re.compile(rf"from the Python worker: ({re.escape(OWN_ERRORS)}.*?)\s*(?:SQLSTATE: \w+)?\s*\Z", re.DOTALL)


def wrap_connect_writers() -> None:
    """Afterwards the writers of Connect sessions do what Spark leaves out. Again is harmless."""
    wrap(DataFrameWriter, "save", "saveAsTable", _BatchWriters())
    wrap(DataStreamWriter, "start", "toTable", _StreamWriters())
    refuse_other_ways(SparkSession, DataFrameWriter, DataFrameWriterV2, _BatchWriters())


@contextmanager
def _sentence_first() -> Iterator[None]:
    try:
        yield
    except PythonException as error:
        said = _SAID.search(error.getMessage())
        if said is None:
            raise
        raise PythonException(said[1], grpc_status_code=error.getGrpcStatusCode()) from None


class _ConnectWriters:
    def session(self, writer: Any) -> SparkSession:
        return getattr(writer, "_spark", None) or writer._session  # type: ignore[no-any-return]

    def newest_version(self, writer: Any, options: Mapping[str, str]) -> int | None:
        return None

    def calling(self, _: Any) -> AbstractContextManager[None]:
        return _sentence_first()


class _BatchWriters(_ConnectWriters):
    def source(self, writer: Any) -> str | None:
        return writer._write.source  # type: ignore[no-any-return]

    def call(self, writer: Any) -> WriterCall:
        told = writer._write
        return WriterCall(
            False,
            by_name(told.options),
            tuple(told.partitioning_cols),
            tuple(told.clustering_cols),
            tuple(told.bucket_cols),
        )

    def uncluster(self, writer: Any) -> None:
        writer._write.clustering_cols = []


class _StreamWriters(_ConnectWriters):
    def uncluster(self, writer: Any) -> None:
        """Spark drops them."""

    def source(self, writer: Any) -> str | None:
        return writer._write_proto.format  # type: ignore[no-any-return]

    def call(self, writer: Any) -> WriterCall:
        told = writer._write_proto
        options = by_name(told.options)
        return WriterCall(
            True,
            # A writer that was started before still has its path; where a table is named, that was the table's.
            options if "table" in options or not told.path else {"path": told.path, **options},
            tuple(told.partitioning_column_names),
            tuple(told.clustering_column_names),
            continuous=told.WhichOneof("trigger") == "continuous_checkpoint_interval",
            update=told.output_mode.lower() == "update",
        )
