"""Memory that is no longer needed, back to the system."""

from __future__ import annotations

import ctypes
from contextlib import suppress

import pyarrow as pa


def give_back() -> None:
    """What reading much took, and Arrow and the C library would keep for a next time."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):
        # Only glibc has it, and only there is it needed.
        ctypes.CDLL(None).malloc_trim(0)
