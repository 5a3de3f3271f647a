"""The formats that the simulation runs on: those of `tests/formats.py`, and Parquet directories."""

from __future__ import annotations

from typing import Any

from lakecommit.formats.base import TableFormat
from lakecommit.formats.parquet.table import ParquetFormat
from tests.formats import FORMATS, DeltaLog, TinyLog


class ParquetLog:
    """A log whose objects have a judge of their own: `directory_log.py`."""

    directory = "_spark_metadata"

    def open(self, store: Any, **parts: Any) -> TableFormat:
        return ParquetFormat(store, **parts)


SIMULATED: dict[str, Any] = {**FORMATS, "parquet": ParquetLog()}
__all__ = ["SIMULATED", "DeltaLog", "ParquetLog", "TinyLog"]
