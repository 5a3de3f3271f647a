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
    Manifest,
    Pending,
    Report,
    Seal,
    own_mark_id,
)
from lakecommit.replay import checked_manifests, pending_of


@dataclass(frozen=True, slots=True)
class TableSettings:
    """What a writer asks of the table besides its rows."""

    partition_columns: tuple[str, ...] | None
    properties: Mapping[str, str]
    user_metadata: str | None = None
    accepted_table_id: str | None = None


@dataclass(frozen=True, slots=True)
class Txn:
    """A batch write's idempotence key: Delta's `txnAppId` and `txnVersion`."""

    application_id: str
    version: int


def stream_draft(
    txn_id: str,
    runs: Mapping[CommitUser, Sequence[SealedEpoch]],
    files: Mapping[tuple[CommitUser, Epoch], Pending],
    user_metadata: str | None,
) -> Draft:
    """One snapshot of the runs of several queries, each with both of its marks."""
    last = {user: run[-1].epoch for user, run in runs.items()}
    return Draft(
        txn_id=txn_id,
        operation="STREAMING UPDATE",
        operation_parameters={
            "outputMode": "Append",
            "queryId": ",".join(last),
            "epochId": ",".join(str(epoch) for epoch in last.values()),
        },
        marks=tuple(mark for user, epoch in last.items() for mark in ((str(user), epoch), (own_mark_id(user), epoch))),
        files=tuple(file for user, run in runs.items() for seal in run for file in files[user, seal.epoch].files),
        details={"epochs": {user: [run[0].epoch, run[-1].epoch] for user, run in runs.items()}},
        user_metadata=user_metadata,
    )


def reported_manifests(seal: Seal, reports: Sequence[Report | None]) -> list[Manifest]:
    by_task = {report.attempt.task: report for report in reports if report is not None}
    return [
        manifest
        for winner in seal.winners
        for manifest in checked_manifests(
            Attempt(seal.user, seal.epoch, winner.task, winner.attempt), winner, by_task[winner.task].manifests
        )
    ]


def batch_pending(user: CommitUser, reports: Sequence[Report | None]) -> Pending:
    epoch = Epoch(0)
    seal = Seal(user, epoch, winners_of(reports, user, epoch), None, "", None, 0)
    return pending_of(seal, reported_manifests(seal, reports))


def batch_draft(pending: Pending, settings: TableSettings, txn: Txn | None) -> Draft:
    columns = ",".join(f'"{name}"' for name in settings.partition_columns or ())
    return Draft(
        txn_id=pending.user,
        operation="WRITE",
        operation_parameters={"mode": "Append", "partitionBy": f"[{columns}]"},
        marks=() if txn is None else ((txn.application_id, txn.version),),
        files=pending.files,
        user_metadata=settings.user_metadata,
    )
