"""What is said of a data file that is not there: who has recorded that it may be gone."""

from __future__ import annotations

import random
import uuid
from typing import Any

from lakecommit.clock import SystemClock, shown_time
from lakecommit.errors import LakecommitError, VersionsGone
from lakecommit.formats import registry
from lakecommit.state.lease_layout import CUTS, parse_cut
from lakecommit.storage.base import Store

_VERSIONS_ASKED = 100


async def missing_file(store: Store, path: str, version: int, kept_by: str | None = None) -> VersionsGone:
    """The error for the file `path`, which `version` needs. `kept_by` is the lease that a stream had when it planned to
    read the file. Cost: a listing of cuts, and the newest versions."""
    said = await _cut(store, version) or await _vacuum(store, version)
    had = "" if kept_by is None else f". When the stream planned to read it, it had {kept_by}"
    remedy = (
        "read a newer version, and hold a lease while you read an older one (lakecommit.lease)"
        if kept_by is None
        else "read a newer version from its beginning; where readers pause for long, give them a longer leaseTtl"
    )
    return VersionsGone(
        f"{path} of {store.location} is gone, which version {version} needs: "
        + (said or "nobody recorded it, so that another tool or a lifecycle rule has deleted it")
        + f"{had}; {remedy}"
    )


async def _cut(store: Store, version: int) -> str | None:
    """The cut of a vacuum of lakecommit's that this version is below."""
    async for page in store.list(CUTS):
        for info in page:
            cut = parse_cut(info.path)
            if cut is not None and cut.version > version:
                return (
                    f"'lakecommit vacuum' has deleted files that versions up to {cut.version} removed, and put "
                    f"{info.path} before that, at {shown_time(info.modified_ms)}"
                )
    return None


async def _vacuum(store: Store, version: int) -> str | None:
    """A later version in which somebody has recorded a vacuum."""
    parts: dict[str, Any] = {"clock": SystemClock(), "new_id": lambda: uuid.uuid4().hex, "random": random.random}
    try:
        opened = await registry.format_at(store, **parts)
        for entry in await opened.history(_VERSIONS_ASKED):
            if entry.version > version and entry.is_vacuum:
                return f"version {entry.version} records a vacuum ({entry.engine or entry.operation})"
    except LakecommitError:
        # What is wrong with the log is not what the reader wants to know.
        return None
    return None
