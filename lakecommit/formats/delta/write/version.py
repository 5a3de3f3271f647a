"""The bodies of log versions that lakecommit writes. Pure: time and ids come in as values."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from lakecommit.clock import Moment
from lakecommit.formats.base import check_change
from lakecommit.formats.change import Change
from lakecommit.formats.delta.commit_info import described, notes_of
from lakecommit.formats.delta.log.actions import CLUSTERING_DOMAIN, ROW_TRACKING_DOMAIN, encode
from lakecommit.formats.delta.log.replay import digest_of
from lakecommit.formats.delta.schema.clustering import names_of
from lakecommit.formats.delta.schema.protocol import assigns_row_ids, has_in_commit_timestamps
from lakecommit.formats.delta.state import DeltaProtocol, DeltaState, Metadata
from lakecommit.formats.delta.write.creation import NewTable
from lakecommit.formats.delta.write.evolving import evolved_by
from lakecommit.formats.delta.write.selection import selected
from lakecommit.formats.uris import path_to_uri
from lakecommit.model import DataFile
from lakecommit.schema import parse

try:
    ENGINE_INFO = f"lakecommit/{version('lakecommit')}"
except PackageNotFoundError:
    ENGINE_INFO = "lakecommit"


@dataclass(frozen=True, slots=True)
class Version:
    """A version to be created: its bytes, and what the table is once it is there (the ETag is known only then)."""

    body: bytes
    state: DeltaState


def following(state: DeltaState, change: Change, now: Moment) -> Version:
    """The version after `state` that adds and removes the change's files and moves its marks. Raises what
    `check_change` does."""
    check_change(state, change)
    number = state.version + 1
    metadata = state.metadata if change.evolves is None else evolved_by(change).metadata
    timestamp_ms, in_commit_timestamp_ms = _timestamps(state.protocol, state.metadata, state, now)
    info: dict[str, Any] = {
        "timestamp": timestamp_ms,
        **described(change, state.version),
        "engineInfo": ENGINE_INFO,
        "txnId": change.id,
    }
    if in_commit_timestamp_ms is not None:
        info = {"inCommitTimestamp": in_commit_timestamp_ms, **info}
    if change.user_metadata is not None:
        info["userMetadata"] = change.user_metadata
    if notes := notes_of(change):
        info["lakecommit"] = notes
    row_ids = assigns_row_ids(state.protocol, state.metadata)
    if row_ids:
        info["tags"] = {"delta.rowTracking.preserved": "true"}
    before = -1 if state.row_id_high_watermark is None else state.row_id_high_watermark
    after = before + sum(file.rows for file in change.adds) if row_ids else before
    marks = (*change.marks, *change.kept_marks)

    def about_the_table() -> Iterator[Mapping[str, Any]]:
        yield {"commitInfo": info}
        if metadata is not state.metadata:
            yield {"metaData": _metadata_action(metadata)}
        for application_id, mark in marks:
            yield {"txn": {"appId": application_id, "version": mark, "lastUpdated": now.wall_ms}}
        if row_ids and after > before:
            yield _domain_action(ROW_TRACKING_DOMAIN, {"rowIdHighWaterMark": after})

    def adds() -> Iterator[Mapping[str, Any]]:
        next_row_id = before + 1
        for file in change.adds:
            yield {"add": _add(file, next_row_id if row_ids else None, number)}
            next_row_id += file.rows

    # What is removed may be most of it, and is never there twice.
    lines = io.BytesIO()
    lines.write(encode(about_the_table()))
    if change.removes is not None:
        selected(change).copy_to(lines)
    lines.write(encode(adds()))
    body = lines.getvalue()
    return Version(
        body,
        replace(
            state,
            version=number,
            etag=None,
            digest=digest_of(body),
            metadata=metadata,
            txns={**state.txns, **dict(marks)},
            txn_times={**state.txn_times, **{application_id: now.wall_ms for application_id, _ in marks}},
            row_id_high_watermark=after if after > before else state.row_id_high_watermark,
            in_commit_timestamp_ms=in_commit_timestamp_ms,
            looked=now,
            tail_files=state.tail_files + len(change.adds) + (0 if change.removes is None else change.removes.files),
        ),
    )


def create(table: NewTable, txn_id: str, now: Moment) -> Version:
    """Version 0 of an empty table."""
    protocol, clustering = table.protocol, table.clustering_columns
    timestamp_ms, in_commit_timestamp_ms = _timestamps(protocol, table.metadata, None, now)
    metadata = replace(table.metadata, other={"createdTime": now.wall_ms})
    info: dict[str, Any] = {
        "timestamp": timestamp_ms,
        "operation": "CREATE TABLE",
        "operationParameters": {
            "partitionBy": json.dumps(metadata.partition_columns, separators=(",", ":")),
            "clusterBy": json.dumps(names_of(clustering, parse(metadata.schema_string)), separators=(",", ":")),
            "description": None,
            "isManaged": "false",
            "properties": json.dumps(dict(metadata.configuration), separators=(",", ":")),
        },
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "operationMetrics": {},
        "engineInfo": ENGINE_INFO,
        "txnId": txn_id,
    }
    if in_commit_timestamp_ms is not None:
        info = {"inCommitTimestamp": in_commit_timestamp_ms, **info}
    body = encode(
        [
            {"commitInfo": info},
            {"protocol": _protocol_action(protocol)},
            {"metaData": _metadata_action(metadata)},
            *_clustering_action(clustering),
        ]
    )
    return Version(
        body,
        DeltaState(
            version=0,
            etag=None,
            digest=digest_of(body),
            protocol=protocol,
            metadata=metadata,
            txns={},
            txn_times={},
            row_id_high_watermark=None,
            in_commit_timestamp_ms=in_commit_timestamp_ms,
            clustering_columns=clustering,
            looked=now,
            followed_from=0,
        ),
    )


def _clustering_action(clustering: tuple[tuple[str, ...], ...]) -> Iterator[Mapping[str, Any]]:
    if clustering:
        # As delta-spark writes it, with the domain's name in it.
        columns = {"clusteringColumns": clustering, "domainName": CLUSTERING_DOMAIN}
        yield _domain_action(CLUSTERING_DOMAIN, columns)


def _domain_action(domain: str, configuration: Mapping[str, Any]) -> dict[str, Any]:
    text = json.dumps(configuration, ensure_ascii=False, separators=(",", ":"))
    return {"domainMetadata": {"domain": domain, "configuration": text, "removed": False}}


def _timestamps(
    protocol: DeltaProtocol, metadata: Metadata, state: DeltaState | None, now: Moment
) -> tuple[int, int | None]:
    """(timestamp, in-commit timestamp). The latter grows from version to version, also when the clock goes back."""
    if not has_in_commit_timestamps(protocol, metadata):
        return now.wall_ms, None
    last = state.in_commit_timestamp_ms if state is not None else None
    in_commit = now.wall_ms if last is None else max(now.wall_ms, last + 1)
    return in_commit, in_commit


def _add(file: DataFile, base_row_id: int | None, number: int) -> dict[str, Any]:
    add: dict[str, Any] = {
        "path": path_to_uri(file.path),
        "partitionValues": dict(file.partition_values),
        "size": file.size_bytes,
        "modificationTime": file.created_ms,
        "dataChange": True,
        "stats": file.stats,
    }
    if base_row_id is not None:
        add["baseRowId"] = base_row_id
        add["defaultRowCommitVersion"] = number
    return add


def _metadata_action(metadata: Metadata) -> dict[str, Any]:
    return {
        "id": metadata.id,
        "format": {"provider": metadata.provider, "options": {}},
        "schemaString": metadata.schema_string,
        "partitionColumns": list(metadata.partition_columns),
        "configuration": dict(metadata.configuration),
        **metadata.other,
    }


def _protocol_action(protocol: DeltaProtocol) -> dict[str, Any]:
    action: dict[str, Any] = {"minReaderVersion": protocol.min_reader, "minWriterVersion": protocol.min_writer}
    if protocol.min_reader >= 3:
        action["readerFeatures"] = sorted(protocol.reader_features)
    if protocol.min_writer >= 7:
        action["writerFeatures"] = sorted(protocol.writer_features)
    return action
