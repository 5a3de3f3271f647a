"""What a process of its own is asked for: a compact, for the directory as whoever asks has seen it. Pure.

A directory may be deleted and made anew before the process has begun, or while it reads the log. So it is told all that
a state is confirmed by, and confirms that before it puts anything.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakecommit.clock import Moment
from lakecommit.formats.parquet.record import Record
from lakecommit.formats.parquet.state import ParquetState


def asked_of(state: ParquetState, number: int, entry: bytes) -> dict[str, str]:
    """The compact of `number`, whose own epoch has the lines of `entry`."""
    return {
        "number": str(number),
        "entry": entry.decode(),
        "version": str(state.version),
        "etag": state.etag or "",
        "digest": "" if state.digest is None else state.digest.hex(),
        "record": state.record.to_json().decode(),
        "recordNumber": str(state.record.number),
        "recordEtag": state.record_etag or "",
    }


def known_from(job: Mapping[str, str], looked: Moment) -> ParquetState:
    """The state that was seen, as far as it takes to confirm it and to go on from it."""
    return ParquetState(
        version=int(job["version"]),
        etag=job["etag"] or None,
        digest=bytes.fromhex(job["digest"]) or None,
        set_ms=None,
        record=Record.from_json(job["record"].encode(), int(job["recordNumber"]), "the record that is compacted for"),
        record_etag=job["recordEtag"] or None,
        looked=looked,
    )
