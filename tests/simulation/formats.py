"""The formats that the simulation runs on: those of `tests/formats.py`, Parquet directories, and Delta's once more in
stories that all have readers and vacuums."""

from __future__ import annotations

from typing import Any

from lakecommit.formats.parquet.table import ParquetFormat
from lakecommit.formats.table_format import TableFormat
from tests.formats import FORMATS, DeltaLog, TinyLog


class ParquetLog:
    """A log whose objects have a judge of their own: `directory_log.py`."""

    directory = "_spark_metadata"

    def open(self, store: Any, **parts: Any) -> TableFormat:
        return ParquetFormat(store, **parts)

    def path(self, version: int) -> str:
        """Of a directory of batch writes, whose versions are all compacts."""
        return f"{self.directory}/{version}.compact"


SIMULATED: dict[str, Any] = {**FORMATS, "parquet": ParquetLog(), "readers": DeltaLog()}
__all__ = ["SIMULATED", "DeltaLog", "ParquetLog", "TinyLog"]
