"""The deliberate faults of every file that has some."""

from __future__ import annotations

from . import (  # noqa: F401 (they register their own)
    batch_directory_faults,
    batch_overwriting_faults,
    cleaning_faults,
    complete_faults,
    evolving_faults,
    expiry_faults,
    lease_faults,
    listening_faults,
    overwriting_faults,
    own_vacuum_faults,
    parquet_faults,
    pending_faults,
    replacing_faults,
    stream_faults,
    upkeep_faults,
    vacuum_faults,
    vacuum_order_faults,
)
from .faults import FAULTS, RARE, format_of

__all__ = ["FAULTS", "RARE", "format_of"]
