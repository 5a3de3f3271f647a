"""The actions that are not about data files, as the log spells them, reconciled from the newest to the oldest. Pure.

What nobody here understands in them (a table's description, a domain of another program) survives all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Action = Mapping[str, Any]


@dataclass(slots=True)
class OtherActions:
    """`txns` are by application, `domains` by name; a domain that was removed is among them, with `removed` set."""

    protocol: Action | None = None
    metadata: Action | None = None
    txns: dict[str, Action] = field(default_factory=dict)
    domains: dict[str, Action] = field(default_factory=dict)

    def take_older(self, actions: Iterable[Mapping[str, Any]]) -> None:
        """Takes actions that are older than all that were taken: each counts unless a newer one has replaced it."""
        for action in actions:
            if value := action.get("protocol"):
                self.protocol = self.protocol or value
            if value := action.get("metaData"):
                self.metadata = self.metadata or value
            if value := action.get("txn"):
                self.txns.setdefault(str(value["appId"]), value)
            if value := action.get("domainMetadata"):
                self.domains.setdefault(str(value["domain"]), value)
