"""Where a deletion vector is, in words that every format has (`formats/reading.py`). Pure."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Mapping
from typing import Any

from lakecommit.errors import CorruptState

# The alphabet of ZeroMQ's base 85, which no module of Python's decodes before 3.13.
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_AT = {character: number for number, character in enumerate(_Z85)}
# 16 bytes.
_ID_CHARACTERS = 20


def vector_words(vector: Mapping[str, Any]) -> str:
    """The descriptor of the log as `ReadFile.vector` has it. Raises `CorruptState` if it is none."""
    try:
        kind, place, size = str(vector["storageType"]), str(vector["pathOrInlineDv"]), int(vector["sizeInBytes"])
        said: dict[str, Any] = {"rows": int(vector["cardinality"])}
        if kind == "i":
            said["inline"] = base64.b64encode(_decoded(place)[:size]).decode()
        else:
            said |= {"path": vector_path(kind, place), "at": int(vector.get("offset") or 0), "size": size}
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptState(
            f"the log has a deletion vector that is none ({error!r}): {dict(vector)}; restore the table to a version "
            "before it, or repair it with the tool that wrote it"
        ) from error
    return json.dumps(said, separators=(",", ":"))


def vector_path(kind: str, place: str) -> str:
    """The object that holds a vector: a key below the table's location, or a whole URI. Raises `ValueError` if it
    is in no object."""
    if kind == "p":
        return place
    if kind != "u" or len(place) < _ID_CHARACTERS:
        raise ValueError(f"{kind!r} is no kind of deletion vector that is in a file")
    directory, id_ = place[:-_ID_CHARACTERS], uuid.UUID(bytes=_decoded(place[-_ID_CHARACTERS:]))
    return f"{directory}/deletion_vector_{id_}.bin" if directory else f"deletion_vector_{id_}.bin"


def _decoded(text: str) -> bytes:
    if len(text) % 5:
        raise ValueError(f"{text!r} is not in base 85")
    found = bytearray()
    for start in range(0, len(text), 5):
        value = 0
        for character in text[start : start + 5]:
            value = value * 85 + _AT[character]
        found += value.to_bytes(4, "big")
    return bytes(found)
