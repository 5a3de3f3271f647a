"""Reconciles the actions of successive versions into a table state."""

from __future__ import annotations

import hashlib

from lakecommit.clock import Moment
from lakecommit.formats.delta.log.actions import (
    CLUSTERING_DOMAIN,
    ROW_TRACKING_DOMAIN,
    Actions,
    clustering_columns,
    row_id_high_watermark,
)
from lakecommit.formats.delta.log.vacuums import after_commit
from lakecommit.formats.delta.state import DeltaProtocol, DeltaState, Metadata
from lakecommit.formats.evidence import Vacuums


class LogReplay:
    """Takes versions in ascending order; the newest action of each kind, application and domain holds."""

    def __init__(self, start: DeltaState | None = None, *, checkpoint: int = -1) -> None:
        """`checkpoint` is the version of the one whose actions are applied first, if there is one."""
        self._protocol: DeltaProtocol | None = start.protocol if start else None
        self._metadata: Metadata | None = start.metadata if start else None
        self._txns: dict[str, int] = dict(start.txns) if start else {}
        self._txn_times: dict[str, int] = dict(start.txn_times) if start else {}
        self._row_ids: int | None = start.row_id_high_watermark if start else None
        self._clustering: tuple[tuple[str, ...], ...] = start.clustering_columns if start else ()
        self._in_commit_timestamp_ms: int | None = start.in_commit_timestamp_ms if start else None
        self._followed_from: int | None = start.followed_from if start else None
        self._vacuums = start.vacuums if start else Vacuums()
        self._rewritten = start.rewritten if start else 0
        self._compacted: set[str] = set()
        self._checkpoint = start.checkpoint if start else checkpoint
        self._tail_files = start.tail_files if start else 0

    def apply(self, actions: Actions) -> None:
        self._protocol = actions.protocol or self._protocol
        self._metadata = actions.metadata or self._metadata
        self._txns.update(actions.txns)
        for application_id in actions.txns:
            self._txn_times.pop(application_id, None)
        self._txn_times.update(actions.txn_times)
        if ROW_TRACKING_DOMAIN in actions.domains:
            self._row_ids = row_id_high_watermark(actions.domains[ROW_TRACKING_DOMAIN])
        if CLUSTERING_DOMAIN in actions.domains:
            self._clustering = clustering_columns(actions.domains[CLUSTERING_DOMAIN])
        # The timestamp belongs to one commit: a version without it (the feature was off) leaves none to go on from.
        self._in_commit_timestamp_ms = actions.in_commit_timestamp_ms
        self._vacuums = after_commit(self._vacuums, actions.commit_info)
        self._compacted.update(actions.removed)
        self._tail_files += actions.files

    def state(self, version: int, *, etag: str | None, digest: bytes | None, looked: Moment) -> DeltaState | None:
        """The state after the last version applied; None where no protocol or no metadata was among the actions."""
        if self._protocol is None or self._metadata is None:
            return None
        return DeltaState(
            version=version,
            etag=etag,
            digest=digest,
            protocol=self._protocol,
            metadata=self._metadata,
            txns=self._txns,
            txn_times=self._txn_times,
            row_id_high_watermark=self._row_ids,
            in_commit_timestamp_ms=self._in_commit_timestamp_ms,
            clustering_columns=self._clustering,
            looked=looked,
            followed_from=version if self._followed_from is None else self._followed_from,
            vacuums=self._vacuums,
            rewritten=self._rewritten,
            compacted=frozenset(self._compacted),
            checkpoint=self._checkpoint,
            tail_files=self._tail_files,
        )


def digest_of(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()
