"""What goes into a snapshot: from pending files to a change. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from lakecommit.formats.change import Change, Evolution, Kind, RestsOn, Selection
from lakecommit.model import Pending, own_mark_id
from lakecommit.progress.observer import Part
from lakecommit.progress.settings import TableSettings, Txn


def stream_change(change_id: str, parts: Sequence[Part], removes: Selection | None = None) -> Change:
    """One snapshot of the runs of several queries, each with both of its marks. Precondition: all of them ask for the
    same metadata. `removes` is what goes where the only one replaces the table."""
    kept = frozenset(() if removes is None else removes.kept)
    last = {part.query: part.epochs[-1].epoch for part in parts}
    return Change(
        id=change_id,
        kind=Kind.APPEND_EPOCHS if removes is None else Kind.REPLACE_EPOCH,
        adds=tuple(file for part in parts for file in part.adds if file.path not in kept),
        marks=tuple(
            mark for query, epoch in last.items() for mark in ((str(query), epoch), (own_mark_id(query), epoch))
        ),
        rests_on=_rests_on(removes is None and all(part.settings.blind for part in parts)),
        holds=tuple(part.held for part in parts),
        removes=removes,
        user_metadata=parts[0].settings.user_metadata,
    )


def batch_change(
    pending: Pending,
    settings: TableSettings,
    txn: Txn | None,
    removes: Selection | None = None,
    evolves: Evolution | None = None,
) -> Change:
    """The one version of a batch write, which is known by the write's id."""
    return Change(
        id=pending.query,
        kind=Kind.APPEND_BATCH if settings.replaces is None else Kind.REPLACE_BATCH,
        adds=pending.files,
        marks=() if txn is None else ((txn.application_id, txn.version),),
        rests_on=_rests_on(settings.blind and settings.replaces is None),
        scope=None if settings.replaces is None else settings.replaces.scope,
        removes=removes,
        evolves=evolves,
        partition_columns=settings.partition_columns or (),
        user_metadata=settings.user_metadata,
    )


def _rests_on(blind: bool) -> RestsOn:
    return RestsOn.NOTHING if blind else RestsOn.UNKNOWN
