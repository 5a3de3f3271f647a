"""Objects that may be large, piece by piece."""

from __future__ import annotations

from collections.abc import AsyncIterator

from lakecommit.storage.base import GetRange

PIECE_BYTES = 4 * 1024**2


async def whole_lines(store: GetRange, path: str, size_bytes: int) -> AsyncIterator[bytes]:
    """An object in pieces that end with a line."""
    left = b""
    for start in range(0, size_bytes, PIECE_BYTES):
        piece = left + await store.get_range(path, start, min(PIECE_BYTES, size_bytes - start))
        end = piece.rfind(b"\n") + 1
        if end:
            yield piece[:end]
        left = piece[end:]
    if left:
        yield left
