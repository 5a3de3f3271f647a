"""How the simulation fails."""

from __future__ import annotations


class Violation(Exception):
    """Something happened that the design says never happens."""
