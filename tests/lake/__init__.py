"""One lake for all tests without Spark: a store, a clock, tasks that write or only say so, committers."""

from .lake import ASYNCHRONOUS, MINUTE, OTHER, QUERY, SCHEMA, SETTINGS, Lake, hold, let_go
from .tasks import Named

__all__ = ["ASYNCHRONOUS", "MINUTE", "OTHER", "QUERY", "SCHEMA", "SETTINGS", "Lake", "Named", "hold", "let_go"]
