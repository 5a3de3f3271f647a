"""One Avro object container file per record: readable by every Avro tool, checked strictly when read here.

The header's metadata carries the kind and format version and the SHA-256 of the encoded record; the sync marker is
taken from that digest, so the same record always gives the same bytes. Nothing is compressed: a reader never allocates
more than a small multiple of the object's own size, which is limited before it is parsed.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from typing import Any

import fastavro

from lakecommit.errors import CorruptState, InvalidInput

MAGIC = b"Obj\x01"
MAX_OBJECT_BYTES = 256 * 1024 * 1024

_FORMAT_KEY = "lakecommit.format"
_DIGEST_KEY = "lakecommit.sha256"
_HEADER_SCHEMA = fastavro.parse_schema({"type": "map", "values": "bytes"})
_LONG_SCHEMA = fastavro.parse_schema("long")


class RecordKind:
    """A kind of record at one format version: its name and its Avro schema.

    `earlier` are the schemas of versions that are still read; fields that they do not have get their default.
    """

    def __init__(
        self, name: str, version: int, schema: Mapping[str, Any], earlier: Mapping[int, Mapping[str, Any]] | None = None
    ) -> None:
        self.name = name
        self.format = f"{name}/{version}"
        self._schema_json = json.dumps(schema, separators=(",", ":")).encode()
        self._schema = fastavro.parse_schema(dict(schema))
        self._readable = {f"{name}/{each}": fastavro.parse_schema(dict(old)) for each, old in (earlier or {}).items()}
        self._readable[self.format] = self._schema

    def encode(self, record: Mapping[str, Any]) -> bytes:
        body = io.BytesIO()
        fastavro.schemaless_writer(body, self._schema, record, strict=True)
        payload = body.getvalue()
        digest = hashlib.sha256(payload).digest()
        out = io.BytesIO()
        out.write(MAGIC)
        header = {
            "avro.schema": self._schema_json,
            "avro.codec": b"null",
            _FORMAT_KEY: self.format.encode(),
            _DIGEST_KEY: digest.hex().encode(),
        }
        fastavro.schemaless_writer(out, _HEADER_SCHEMA, header)
        sync = digest[:16]
        out.write(sync)
        fastavro.schemaless_writer(out, _LONG_SCHEMA, 1)
        fastavro.schemaless_writer(out, _LONG_SCHEMA, len(payload))
        out.write(payload)
        out.write(sync)
        if out.tell() > MAX_OBJECT_BYTES:
            raise InvalidInput(
                f"a {self.name} of {out.tell()} bytes is larger than the limit of {MAX_OBJECT_BYTES}; use fewer "
                "tasks, or fewer and larger files"
            )
        return out.getvalue()

    def decode(self, data: bytes, name: str) -> dict[str, Any]:
        """The record in `data`; `name` is the object's, for the message.

        Raises `CorruptState` if the bytes are not exactly one intact record of this kind, in this version or an
        earlier one.
        """
        written, payload = self._payload(data, name)
        try:
            stream = io.BytesIO(payload)
            record = fastavro.schemaless_reader(stream, written, self._schema)
            complete = stream.read(1) == b""
        except Exception as error:
            raise damaged(self.name, name, f"its record cannot be decoded ({type(error).__name__})") from error
        if not complete or not isinstance(record, dict):
            raise damaged(self.name, name, "its record is followed by something else")
        return record

    def _payload(self, data: bytes, name: str) -> tuple[Any, bytes]:
        """The schema that the record was written with, and its bytes."""
        if len(data) > MAX_OBJECT_BYTES:
            raise damaged(self.name, name, f"it has {len(data)} bytes, more than the limit of {MAX_OBJECT_BYTES}")
        header, stream = _read_header(data, self.name, name)
        found = header.get(_FORMAT_KEY, b"").decode(errors="replace")
        if found not in self._readable:
            hint = (
                "it was written by a newer lakecommit: upgrade" if found.startswith(f"{self.name}/") else "another kind"
            )
            raise damaged(self.name, name, f"its format is {found!r}, not {self.format!r} ({hint})")
        try:
            sync = stream.read(16)
            count = fastavro.schemaless_reader(stream, _LONG_SCHEMA, None)
            size = fastavro.schemaless_reader(stream, _LONG_SCHEMA, None)
        except Exception as error:
            raise damaged(self.name, name, "it is cut off after its header") from error
        rest = stream.read()
        if count != 1 or size != len(rest) - 16 or rest[-16:] != sync or header.get("avro.codec") != b"null":
            raise damaged(self.name, name, "it is cut off, or more than one record")
        payload = rest[:-16]
        if hashlib.sha256(payload).hexdigest().encode() != header.get(_DIGEST_KEY):
            raise damaged(self.name, name, "its checksum does not match its contents")
        return self._readable[found], payload


def format_of(data: bytes, name: str) -> str:
    """The kind and version that an object says it is, for a reader that takes several ("manifest/1")."""
    header, _ = _read_header(data, "state object", name)
    return header.get(_FORMAT_KEY, b"").decode(errors="replace")


def _read_header(data: bytes, kind: str, name: str) -> tuple[dict[str, bytes], io.BytesIO]:
    stream = io.BytesIO(data)
    if stream.read(len(MAGIC)) != MAGIC:
        raise damaged(kind, name, "it is not an Avro file")
    try:
        header = fastavro.schemaless_reader(stream, _HEADER_SCHEMA, None)
    except Exception as error:
        raise damaged(kind, name, "its header cannot be decoded") from error
    assert isinstance(header, dict)
    return header, stream


def damaged(kind: str, name: str, what: str) -> CorruptState:
    return CorruptState(
        f"{kind} {name} is damaged: {what}; restore the object from a backup or a bucket version; nothing was deleted"
    )
