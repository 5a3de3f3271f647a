"""The formats that the simulation runs on: those of `tests/formats.py`, and Delta's once more in stories that all have
readers and vacuums."""

from __future__ import annotations

from typing import Any

from tests.formats import LOGS, DeltaLog, ParquetLog, TinyLog

SIMULATED: dict[str, Any] = {**LOGS, "readers": DeltaLog()}
__all__ = ["SIMULATED", "DeltaLog", "ParquetLog", "TinyLog"]
