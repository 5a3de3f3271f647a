"""What versions say about themselves, in words that every format has. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """What a version says about itself, whoever wrote it; None or empty if it does not say.

    `id` is that of the change. `operation` and `parameters` are in the format's own words, for people. `epochs` are the
    first and last one of each query. `is_vacuum`: it says that somebody deletes, or has deleted, files.
    """

    version: int
    timestamp_ms: int | None = None
    operation: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    rows: int | None = None
    files: int | None = None
    size_bytes: int | None = None
    engine: str | None = None
    id: str | None = None
    user_metadata: str | None = None
    epochs: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    is_vacuum: bool = False


@dataclass(frozen=True, slots=True)
class Doubt:
    """What is wrong with a table, or will be, and what to do about it. `readable` says that readers can read it."""

    says: str
    remedy: str
    readable: bool = True
