"""What goes into a snapshot: from reports to pending files, and from pending files to a draft. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakecommit.committer import SealedEpoch, winners_of
from lakecommit.model import (
    Attempt,
    CommitUser,
    Draft,
    Epoch,
    Pending,
    Report,
    Totals,
    Winner,
    own_mark_id,
)
from lakecommit.stored_epochs import Staged, checked_manifests, pending_of


@dataclass(frozen=True, slots=True)
class TableSettings:
    """What a writer asks of the table besides its rows.

    `given_up` are epochs whose files are left out for good. `blind` says that it is known not to have read the table.
    """

    partition_columns: tuple[str, ...] | None
    properties: Mapping[str, str]
    user_metadata: str | None = None
    accepted_table_id: str | None = None
    event_time_column: str | None = None
    watermark_delay_us: int = 0
    query_name: str | None = None
    given_up: frozenset[Epoch] = frozenset()
    blind: bool = False


@dataclass(frozen=True, slots=True)
class Txn:
    """A batch write's idempotence key: Delta's `txnAppId` and `txnVersion`."""

    application_id: str
    version: int


@dataclass(frozen=True, slots=True)
class Part:
    """One query's part of a snapshot: a run of its epochs, and their files. `name` is the one that Spark knows."""

    user: CommitUser
    epochs: Sequence[SealedEpoch]
    files: Sequence[Pending]
    name: str | None = None

    @property
    def totals(self) -> Totals:
        return sum((seal.totals for seal in self.epochs), Totals())


def stream_draft(txn_id: str, parts: Sequence[Part], user_metadata: str | None, blind: bool) -> Draft:
    """One snapshot of the runs of several queries, each with both of its marks."""
    last = {part.user: part.epochs[-1].epoch for part in parts}
    details: dict[str, object] = {
        "epochs": {part.user: [part.epochs[0].epoch, part.epochs[-1].epoch] for part in parts}
    }
    watermarks = {part.user: part.epochs[-1].watermark_us for part in parts}
    if any(each is not None for each in watermarks.values()):
        details["watermarks"] = watermarks
    names = {part.user: part.name for part in parts if part.name is not None}
    if names:
        details["names"] = names
    left_out = {
        part.user: [
            seal.epoch
            for seal, files in zip(part.epochs, part.files, strict=True)
            if seal.totals.files > len(files.files)
        ]
        for part in parts
    }
    if any(left_out.values()):
        details["discarded"] = {user: epochs for user, epochs in left_out.items() if epochs}
    return Draft(
        txn_id=txn_id,
        operation="STREAMING UPDATE",
        operation_parameters={
            "outputMode": "Append",
            "queryId": ",".join(last),
            "epochId": ",".join(str(epoch) for epoch in last.values()),
        },
        marks=tuple(mark for user, epoch in last.items() for mark in ((str(user), epoch), (own_mark_id(user), epoch))),
        files=tuple(file for part in parts for pending in part.files for file in pending.files),
        details=details,
        user_metadata=user_metadata,
        blind=blind,
    )


def reported(user: CommitUser, epoch: Epoch, winners: Sequence[Winner], reports: Sequence[Report | None]) -> Staged:
    """The winners' manifests as they were reported, checked against what a seal says of them."""
    by_task = {report.attempt.task: report for report in reports if report is not None}
    return Staged.joined(
        checked_manifests(Attempt(user, epoch, winner.task, winner.attempt), winner, by_task[winner.task].manifests)
        for winner in winners
    )


def batch_pending(user: CommitUser, reports: Sequence[Report | None]) -> Pending:
    epoch = Epoch(0)
    winners = winners_of(reports, user, epoch)
    return pending_of(user, epoch, reported(user, epoch, winners, reports).manifests)


def batch_draft(pending: Pending, settings: TableSettings, txn: Txn | None) -> Draft:
    columns = ",".join(f'"{name}"' for name in settings.partition_columns or ())
    return Draft(
        txn_id=pending.user,
        operation="WRITE",
        operation_parameters={"mode": "Append", "partitionBy": f"[{columns}]"},
        marks=() if txn is None else ((txn.application_id, txn.version),),
        files=pending.files,
        user_metadata=settings.user_metadata,
        blind=settings.blind,
    )
