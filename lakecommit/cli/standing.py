"""How a commit user's standing is shown, once and while it is watched: what is pending, lag, cadence, watermark."""

from __future__ import annotations

from typing import Any

from lakecommit.cli.output import duration, event_time, size
from lakecommit.inspection import UserStatus

STANDING_COLUMNS = ("#pending", "#files", "#rows", "#bytes", "#lag", "cadence", "watermark")


def standing_row(user: UserStatus, now_ms: int) -> tuple[object, ...]:
    load = user.load
    lag, watermark = duration(user.lag_ms(now_ms)), event_time(user.watermark_us, "milliseconds")
    figures = (load.epochs, load.files, load.rows, size(load.size_bytes))
    return (*figures, lag, _cadence(user.partitions_behind), watermark)


def standing_data(user: UserStatus, now_ms: int) -> dict[str, Any]:
    load, behind = user.load, user.partitions_behind
    return {
        "user": user.user,
        "mark": user.marks.mark,
        "ownMark": user.marks.own,
        "newestSeal": user.newest_seal,
        "pendingEpochs": load.epochs,
        "pendingFiles": load.files,
        "pendingRows": load.rows,
        "pendingSizeBytes": load.size_bytes,
        "lagMs": user.lag_ms(now_ms),
        "inBacklog": None if behind is None else behind > 0,
        "backlogPartitions": behind,
        "watermark": event_time(user.watermark_us),
        "watermarkUs": user.watermark_us,
    }


def problems_of(user: UserStatus) -> list[str]:
    """What is wrong with the user's records, and with its epochs, each in one line."""
    problems = [f"{user.user}: {user.problem}"] if user.problem else []
    problems += [f"epoch {each.epoch} of {user.user}: {each.problem}" for each in user.staged if each.problem]
    if user.passed:
        problems.append(f"{user.user}: another sink went past pending epochs; their rows are missing")
    return problems


def _cadence(partitions_behind: int | None) -> str | None:
    if partitions_behind is None:
        return None
    if partitions_behind == 0:
        return "normal"
    return f"in backlog, {partitions_behind:,} partition{'s' if partitions_behind > 1 else ''} behind"
