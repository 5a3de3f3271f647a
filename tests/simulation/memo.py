"""Pure functions that seeds call with the same arguments again and again, remembered.

Only functions from immutable values to values that nobody changes are here, so that what lakecommit decides is the
same with and without.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from unittest.mock import patch

from lakecommit.formats.delta import table
from lakecommit.formats.delta.log import reading
from lakecommit.formats.delta.write import creation
from lakecommit.formats.plan import WritePlan
from lakecommit.state import codec
from lakecommit.state.container import RecordKind

_SIZE = 4096


@contextmanager
def remembering() -> Iterator[None]:
    targets: list[tuple[Any, str]] = [
        (reading, "parse_lines"),
        (table, "parse"),
        (creation, "parse"),
        (WritePlan, "to_json"),
        (RecordKind, "_payload"),
        (RecordKind, "decode"),
        (codec, "decode_manifest"),
        (codec, "decode_seal"),
    ]
    patches = [patch.object(owner, name, lru_cache(_SIZE)(getattr(owner, name))) for owner, name in targets]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in reversed(patches):
            each.stop()
