"""The Delta format: a lean, blind append to Delta tables."""

from lakecommit.formats.delta.state import DeltaState
from lakecommit.formats.delta.table import DeltaFormat

__all__ = ["DeltaFormat", "DeltaState"]
