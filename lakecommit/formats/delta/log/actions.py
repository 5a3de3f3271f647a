"""Actions of the Delta log: one JSON object a line. Lines of data files are never decoded."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakecommit.formats.delta.log.names import OWN_NAME
from lakecommit.formats.delta.state import DeltaProtocol, Metadata

ROW_TRACKING_DOMAIN = "delta.rowTracking"
CLUSTERING_DOMAIN = "delta.clustering"

_KEY = re.compile(rb'\s*\{\s*"(\w+)"\s*:\s*(null)?')
_PER_FILE = frozenset({b"add", b"remove", b"cdc", b"sidecar"})
# As nearly every writer spells it.
_AS_ALWAYS = (b'{"add":{', b'{"remove":{', b'{"cdc":{')


@dataclass(frozen=True, slots=True)
class Actions:
    """The actions of a commit or checkpoint, without those of data files. A domain that was removed maps to None.

    `removed` are the base names of lakecommit's files that the commit removes, and `files` counts its actions of data
    files.
    """

    protocol: DeltaProtocol | None
    metadata: Metadata | None
    txns: Mapping[str, int]
    txn_times: Mapping[str, int]
    domains: Mapping[str, str | None]
    commit_info: Mapping[str, Any] | None
    removed: frozenset[str] = frozenset()
    files: int = 0

    @property
    def txn_id(self) -> str | None:
        value = (self.commit_info or {}).get("txnId")
        return None if value is None else str(value)

    @property
    def in_commit_timestamp_ms(self) -> int | None:
        value = (self.commit_info or {}).get("inCommitTimestamp")
        return None if value is None else int(value)


def parse_lines(body: bytes) -> Actions:
    """Reads a commit or a JSON checkpoint. Lines of data files are stepped over without decoding them.

    Raises `ValueError`, `KeyError` or `TypeError` if a line is no action.
    """
    others, files = [], 0
    for line in _lines(body):
        if is_per_file(line):
            files += 1
        else:
            others.append(json.loads(line))
    removed = frozenset(_removed(body)) if b'"remove"' in body else frozenset()
    return replace(collect(others), removed=removed, files=files)


def other_lines(body: bytes) -> Iterator[Mapping[str, Any]]:
    """The decoded lines that are not about a data file. Raises as `parse_lines` does."""
    return (json.loads(line) for line in _lines(body) if not is_per_file(line))


def file_lines(body: bytes, kind: bytes) -> Iterator[Mapping[str, Any]]:
    """The decoded lines that are about a data file in this way: `add` or `remove`. Raises as `parse_lines` does."""
    for line in _lines(body):
        if b'"%s"' % kind in line and (action := json.loads(line)).get(kind.decode()) is not None:
            yield action


def is_per_file(line: bytes) -> bool:
    """Whether a line is about a data file."""
    if line.startswith(_AS_ALWAYS):
        return True
    # A writer may spell out the absent actions of a line as nulls; then the first key says nothing.
    match = _KEY.match(line)
    return match is not None and match[1] in _PER_FILE and match[2] is None


def collect(actions: Iterable[Mapping[str, Any]]) -> Actions:
    """Gathers decoded actions; of several that reconcile with each other the last one holds."""
    protocol: DeltaProtocol | None = None
    metadata: Metadata | None = None
    commit_info: Mapping[str, Any] | None = None
    txns: dict[str, int] = {}
    txn_times: dict[str, int] = {}
    domains: dict[str, str | None] = {}
    for action in actions:
        if value := action.get("protocol"):
            protocol = _protocol(value)
        if value := action.get("metaData"):
            metadata = _metadata(value)
        if value := action.get("txn"):
            txns[str(value["appId"])] = int(value["version"])
            txn_times.pop(str(value["appId"]), None)
            if value.get("lastUpdated") is not None:
                txn_times[str(value["appId"])] = int(value["lastUpdated"])
        if value := action.get("domainMetadata"):
            domains[str(value["domain"])] = None if value.get("removed") else str(value["configuration"])
        if value := action.get("commitInfo"):
            commit_info = value
    return Actions(protocol, metadata, txns, txn_times, domains, commit_info)


def merge(parts: Sequence[Actions]) -> Actions:
    """The actions of all parts of one checkpoint, which holds each action once."""
    return Actions(
        protocol=next((part.protocol for part in parts if part.protocol), None),
        metadata=next((part.metadata for part in parts if part.metadata), None),
        txns={app: version for part in parts for app, version in part.txns.items()},
        txn_times={app: time for part in parts for app, time in part.txn_times.items()},
        domains={domain: value for part in parts for domain, value in part.domains.items()},
        commit_info=None,
    )


def encode(actions: Iterable[Mapping[str, Any]]) -> bytes:
    """As lines of a version. Characters stand for themselves: deltalake 1.6 reads some that are escaped as others."""
    lines = (json.dumps(action, ensure_ascii=False, separators=(",", ":")) for action in actions)
    return b"".join(line.encode() + b"\n" for line in lines)


def row_id_high_watermark(configuration: str | None) -> int | None:
    if configuration is None:
        return None
    value = json.loads(configuration).get("rowIdHighWaterMark")
    return None if value is None else int(value)


def clustering_columns(configuration: str | None) -> tuple[tuple[str, ...], ...]:
    """Physical paths of the clustering columns. The protocol shows plain names, delta-spark writes lists of parts."""
    if configuration is None:
        return ()
    columns = json.loads(configuration).get("clusteringColumns") or []
    return tuple((column,) if isinstance(column, str) else tuple(column) for column in columns)


def _lines(body: bytes) -> Iterator[bytes]:
    return (line for line in io.BytesIO(body) if not line.isspace())


def _removed(body: bytes) -> Iterator[str]:
    for line in _lines(body):
        if b'"remove"' in line and (found := OWN_NAME.search(line)):
            yield found[1].decode()


def _protocol(value: Mapping[str, Any]) -> DeltaProtocol:
    return DeltaProtocol(
        min_reader=int(value["minReaderVersion"]),
        min_writer=int(value["minWriterVersion"]),
        reader_features=frozenset(value.get("readerFeatures") or ()),
        writer_features=frozenset(value.get("writerFeatures") or ()),
    )


def _metadata(value: Mapping[str, Any]) -> Metadata:
    return Metadata(
        id=str(value["id"]),
        schema_string=str(value["schemaString"]),
        partition_columns=tuple(value.get("partitionColumns") or ()),
        configuration=dict(value.get("configuration") or {}),
        provider=str((value.get("format") or {}).get("provider") or "parquet"),
        other={name: value[name] for name in ("name", "description", "createdTime") if value.get(name) is not None},
    )
