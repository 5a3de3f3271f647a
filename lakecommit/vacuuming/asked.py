"""What somebody asks of a vacuum, and whether the table allows it. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from lakecommit.errors import InvalidInput

DAY_MS = 24 * 60 * 60 * 1000
ORPHANS_AFTER_MS = 7 * DAY_MS


@dataclass(frozen=True, slots=True)
class Asked:
    """`retain_ms` is for how long what was removed stays; None for as long as the table says. With `full` the table is
    listed for files that nobody names, which go if they are older than `orphans_after_ms`. `ignored` are ids of leases
    that are cut off. `short` allows less than the table's own retention."""

    retain_ms: int | None = None
    full: bool = False
    orphans_after_ms: int = ORPHANS_AFTER_MS
    ignored: Collection[str] = ()
    short: bool = False


def retained_ms(asked: Asked, table_ms: int | None, location: str) -> int:
    """For how long what was removed stays. `table_ms` is the table's own retention, None for ever.

    Raises `InvalidInput` if that is shorter than the table's own, and nobody has said that it may be.
    """
    if asked.retain_ms is None and table_ms is None:
        raise InvalidInput(
            f"the table at {location} keeps what it has removed for ever, or its retention is no duration; give "
            "--retain with --short-retention if it may go all the same"
        )
    retain_ms = table_ms if asked.retain_ms is None else asked.retain_ms
    assert retain_ms is not None
    if not asked.short:
        if table_ms is None or retain_ms < table_ms:
            raise _too_short("--retain", retain_ms, table_ms, location)
        if asked.full and asked.orphans_after_ms < table_ms:
            raise _too_short("--orphans-after", asked.orphans_after_ms, table_ms, location)
    return retain_ms


def shown_ms(duration_ms: int) -> str:
    """As people give it."""
    for unit, unit_ms in (("d", DAY_MS), ("h", DAY_MS // 24), ("m", 60_000), ("s", 1000)):
        if duration_ms and duration_ms % unit_ms == 0:
            return f"{duration_ms // unit_ms}{unit}"
    return f"{duration_ms / 1000:g}s"


def _too_short(option: str, given_ms: int, table_ms: int | None, location: str) -> InvalidInput:
    own = "for ever" if table_ms is None else f"for {shown_ms(table_ms)}"
    return InvalidInput(
        f"{option} {shown_ms(given_ms)} is less than the table at {location} asks for, which keeps files {own}: "
        "readers without a lease, time travel and writers that have not committed yet may need them. Give a longer "
        "one, or --short-retention if nobody does"
    )
