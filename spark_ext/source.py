"""The data source that Spark finds under `format("lakecommit")`."""

from __future__ import annotations

import uuid

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from lakecommit.reading.batch import Pinned
from lakecommit.spark_ext.readers import BatchReader, pinned_for, pinned_schema, read_options, told_of
from lakecommit.spark_ext.stream_reader import StreamReader
from lakecommit.spark_ext.worker_calls import worker_call
from lakecommit.spark_ext.writers import BatchWriter, StreamWriter


class LakecommitDataSource(DataSource):
    """Writes tables, as a batch or as a stream, and reads them.

    Spark builds it anew in each planning worker. The workers that commit a stream's epochs, or abort them, get one that
    was pickled: that is how they are told apart, since Spark asks both for a stream writer.
    """

    _pickled = False
    _pinned: Pinned | None = None

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        # Pickled with it: all that is derived from one `load()` has it.
        self._frame = uuid.uuid4().hex

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_pickled": True}

    @classmethod
    def name(cls) -> str:
        return "lakecommit"

    @worker_call("opening a table")
    def schema(self) -> StructType:
        """Pins the version that a batch read is of: Spark keeps what is pickled after this."""
        told = told_of(self.options)
        self._pinned, schema = pinned_schema(read_options(self.options, told, streaming=None))
        return schema

    @worker_call("opening a table")
    def reader(self, schema: StructType) -> DataSourceReader:
        # Asked for each action: what the session says of credentials may be newer than the frame.
        told = told_of(self.options)
        options = read_options(self.options, told, streaming=False)
        return BatchReader(options, self._pinned or pinned_for(options, self._frame), schema, told.side_by_side)

    @worker_call("opening a table")
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        # The columns of a schema that was given were chosen: others may come, and are not missed.
        return StreamReader(self.options, schema.json(), chosen=self._pinned is None)

    @worker_call("planning a write")
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return BatchWriter(dict(self.options), schema.json(), overwrite=overwrite)

    @worker_call("planning a write")
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 (Spark's name)
        return StreamWriter(dict(self.options), schema.json(), complete=overwrite, plans=not self._pickled)
