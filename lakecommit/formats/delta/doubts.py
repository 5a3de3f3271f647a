"""What whoever reads a Delta table should know of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from lakecommit.commands import command
from lakecommit.formats.delta.state import DeltaState
from lakecommit.formats.delta.upkeep.retention import DAY_MS, RETENTION_OF_FILES, retention_of
from lakecommit.formats.history import Doubt

# What Delta retains where nobody says anything.
USUAL_RETENTION_MS = 7 * DAY_MS


def doubts(state: DeltaState, location: str) -> Iterator[Doubt]:
    vacuums = state.vacuums
    if vacuums.begun_ms or vacuums.before_ms is not None:
        yield Doubt(
            "another tool vacuums this table (its log has a VACUUM START), which knows no leases of readers",
            f"vacuum it with {command('vacuum', location)} alone, or have the other one retain more than readers take",
        )
    kept_ms = retention_of(state.metadata).tombstones_ms
    if kept_ms is not None and kept_ms < USUAL_RETENTION_MS:
        yield Doubt(
            f"{RETENTION_OF_FILES} is {state.metadata.configuration[RETENTION_OF_FILES]}: a vacuum then deletes files "
            "that readers without a lease, time travel and writers that take longer may still need",
            "set it to 7 days or more, or hold a lease wherever the table is read: "
            f"ALTER TABLE … SET TBLPROPERTIES ('{RETENTION_OF_FILES}' = '7 days')",
        )
