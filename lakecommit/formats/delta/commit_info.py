"""What a version of lakecommit's says of itself in `commitInfo`: how it is written, and how it is read back. Pure.

`lakecommit` in it has the epochs of each query. For the table they mean nothing: there the marks decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakecommit.formats.change import Change, Held, Kind, RestsOn, Scope
from lakecommit.formats.evidence import Holding, holding_of
from lakecommit.model import Epoch, QueryId

_OPERATIONS = {
    Kind.APPEND_EPOCHS: "STREAMING UPDATE",
    Kind.REPLACE_EPOCH: "STREAMING UPDATE",
    Kind.APPEND_BATCH: "WRITE",
    Kind.REPLACE_BATCH: "WRITE",
    Kind.EVOLVE: "UPDATE SCHEMA",
    Kind.FENCE: "FENCE",
}


def described(change: Change, read_version: int) -> dict[str, Any]:
    """What the version of `change` says of itself, but for its times and who wrote it."""
    return {
        "operation": _OPERATIONS[change.kind],
        "operationParameters": _parameters(change),
        "readVersion": read_version,
        "isolationLevel": "Serializable",
        "isBlindAppend": change.rests_on is RestsOn.NOTHING,
        "operationMetrics": _metrics(change),
    }


def notes_of(change: Change) -> dict[str, Any]:
    """What lakecommit notes with it; empty where there is nothing to note."""
    holds = change.holds
    notes: dict[str, Any] = {}
    if runs := {each.query: list(each.run) for each in holds if each.run is not None}:
        notes["epochs"] = runs
    if any(each.watermark_us is not None for each in holds):
        notes["watermarks"] = {each.query: each.watermark_us for each in holds}
    if names := {each.query: each.name for each in holds if each.name is not None}:
        notes["names"] = names
    if any(each.recovered is not None for each in holds):
        notes["recovered"] = [epoch for each in holds for epoch in each.recovered or ()]
    if again := {each.query: list(each.again) for each in holds if each.again}:
        notes["replaced"] = again
    if settled := {each.query: [list(run) for run in each.settled] for each in holds if each.settled}:
        notes["settled"] = settled
    if compacted := [each.query for each in holds if each.compacted]:
        notes["compacted"] = compacted
    if left_out := {each.query: list(each.left_out) for each in holds if each.left_out}:
        notes["discarded"] = left_out
    if change.kind is Kind.APPEND_BATCH and change.kept_marks:
        # Or else it would be taken for the write that the mark is of.
        notes["kept"] = [application_id for application_id, _ in change.kept_marks]
    if change.past_marks:
        notes["past"] = dict(change.past_marks)
    return notes


def holding_in(info: Mapping[str, Any], query: QueryId, own: int | None, etag: str | None) -> Holding:
    """What a version has of a query that sets its own mark to `own`, or does not set it.

    Raises `AttributeError`, `KeyError`, `TypeError` or `ValueError` if the notes are not lakecommit's.
    """
    kind = Kind.FENCE if info.get("operation") == _OPERATIONS[Kind.FENCE] else Kind.APPEND_EPOCHS
    return holding_of(etag, kind, held_in(info, query), own)


def held_in(info: Mapping[str, Any], query: QueryId) -> Held:
    """What the version holds of a query, as far as anything is decided by it. Raises as `holding_in` does."""
    notes = info.get("lakecommit") or {}
    run = notes.get("epochs", {}).get(query)
    return Held(
        query=query,
        run=None if run is None else _run(run),
        again=tuple(Epoch(int(epoch)) for epoch in notes.get("replaced", {}).get(query, ())),
        settled=tuple(_run(each) for each in notes.get("settled", {}).get(query, ())),
        left_out=tuple(Epoch(int(epoch)) for epoch in notes.get("discarded", {}).get(query, ())),
        compacted=query in notes.get("compacted", ()),
    )


def keeps_mark(info: Mapping[str, Any] | None, application_id: str) -> bool:
    """Whether a batch write has found the mark there, and set it once more."""
    return application_id in ((info or {}).get("lakecommit") or {}).get("kept", ())


def past_mark(info: Mapping[str, Any] | None, application_id: str) -> int | None:
    """The mark of an application that the version makes up for, though others have followed it."""
    found = ((info or {}).get("lakecommit") or {}).get("past", {}).get(application_id)
    return None if found is None else int(found)


def _run(found: Any) -> tuple[Epoch, Epoch]:
    first, last = found
    return Epoch(int(first)), Epoch(int(last))


def _parameters(change: Change) -> dict[str, str]:
    if change.kind in (Kind.FENCE, Kind.EVOLVE):
        return {}
    if change.kind in (Kind.APPEND_BATCH, Kind.REPLACE_BATCH):
        columns = ",".join(f'"{name}"' for name in change.partition_columns)
        mode = "Append" if change.kind is Kind.APPEND_BATCH else "Overwrite"
        return {"mode": mode, "partitionBy": f"[{columns}]", **_scope(change.scope)}
    return {
        "outputMode": "Append" if change.kind is Kind.APPEND_EPOCHS else "Complete",
        "queryId": ",".join(each.query for each in change.holds),
        "epochId": ",".join(str(each.last) for each in change.holds),
    }


def _scope(scope: Scope | None) -> dict[str, str]:
    if scope is None:
        return {}
    if scope.where is not None:
        return {"predicate": scope.where}
    return {"isDynamicPartitionOverwrite": "true"} if scope.dynamic else {}


def _metrics(change: Change) -> dict[str, str]:
    added = str(len(change.adds))
    streamed = change.kind in (Kind.APPEND_EPOCHS, Kind.REPLACE_EPOCH)
    files = {"numRemovedFiles": "0", "numAddedFiles": added} if streamed else {"numFiles": added}
    if change.removes is not None:
        files |= {"numRemovedFiles": str(change.removes.files), "numRemovedBytes": str(change.removes.size_bytes)}
    rows = sum(file.rows for file in change.adds)
    size = sum(file.size_bytes for file in change.adds)
    return {**files, "numOutputRows": str(rows), "numOutputBytes": str(size)}
