"""The data source that Spark finds under `format("lakecommit")`."""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from lakecommit.errors import InvalidInput
from lakecommit.spark_ext.failures import sentence_first
from lakecommit.spark_ext.writers import BatchWriter, StreamWriter


class LakecommitDataSource(DataSource):
    """Writes tables, as a batch or as a stream.

    Spark builds it anew in each planning worker. The workers that commit a stream's epochs, or abort them, get one that
    was pickled: that is how they are told apart, since Spark asks both for a stream writer.
    """

    _pickled = False

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_pickled": True}

    @classmethod
    def name(cls) -> str:
        return "lakecommit"

    @sentence_first("opening a table")
    def schema(self) -> StructType:
        raise _cannot_read()

    @sentence_first("opening a table")
    def reader(self, schema: StructType) -> DataSourceReader:
        raise _cannot_read()

    @sentence_first("opening a table")
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        raise _cannot_read()

    @sentence_first("planning a write")
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return BatchWriter(dict(self.options), schema.json(), overwrite=overwrite)

    @sentence_first("planning a write")
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 (Spark's name)
        return StreamWriter(dict(self.options), schema.json(), complete=overwrite, plans=not self._pickled)


def _cannot_read() -> InvalidInput:
    return InvalidInput(
        'format("lakecommit") writes tables and does not read them; read the same location with format("delta"), and '
        "in SQL create tables USING delta"
    )
