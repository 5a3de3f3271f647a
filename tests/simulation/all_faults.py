"""The deliberate faults of every file that has some."""

from __future__ import annotations

from . import cleaning_faults, expiry_faults, listening_faults, pending_faults, vacuum_faults  # noqa: F401 (they register their own)
from .faults import FAULTS

__all__ = ["FAULTS"]
