"""The reports of a complete epoch, or of a batch write, as the manifests and files of its winners."""

from __future__ import annotations

from collections.abc import Sequence

from lakecommit.model import Attempt, Epoch, Pending, QueryId, Report, Winner
from lakecommit.progress.epochs import winners_of
from lakecommit.state.stored import Staged, checked_manifests, pending_of


def reported(query: QueryId, epoch: Epoch, winners: Sequence[Winner], reports: Sequence[Report | None]) -> Staged:
    """The winners' manifests as they were reported, checked against what a seal says of them."""
    by_task = {report.attempt.task: report for report in reports if report is not None}
    return Staged.joined(
        checked_manifests(Attempt(query, epoch, winner.task, winner.attempt), winner, by_task[winner.task].manifests)
        for winner in winners
    )


def batch_pending(query: QueryId, reports: Sequence[Report | None]) -> Pending:
    epoch = Epoch(0)
    winners = winners_of(reports, query, epoch)
    return pending_of(query, epoch, reported(query, epoch, winners, reports).manifests)
