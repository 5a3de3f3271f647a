"""A bucket or a file system as obstore sees it, and how names below a location become keys in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakecommit.errors import InvalidInput
from lakecommit.storage.answers import Answers
from lakecommit.storage.base import ObjectInfo
from lakecommit.storage.local import LocalTree

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore

LARGE_BODY_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Backend:
    """`uploads` gives the client for large bodies: its requests may be silent for as long as the upload lasts.

    `prefix` is the location inside the bucket, without slashes around it. `ordered` says that a listing arrives in
    the order of the keys. `bulk_delete` says that one request deletes many keys and does not mind missing ones.
    `tree` is there for local disk alone. `answers` says how long to wait for an answer before it is asked for again;
    None for local disk and memory, and if the user has said how long to wait.
    """

    client: ObjectStore = field(repr=False)
    uploads: Callable[[], ObjectStore] = field(repr=False)
    prefix: str
    ordered: bool
    bulk_delete: bool
    tree: LocalTree | None = None
    answers: Answers | None = field(default=None, repr=False)

    def key(self, path: str) -> str:
        """The key of the object `path`. Refuses what could mean another object than it says."""
        if not path or any(segment in {"", ".", ".."} for segment in path.split("/")) or _CONTROL.search(path):
            raise InvalidInput(
                f"not a name of an object: {path!r}; names are relative, without empty, '.' or '..' parts "
                "and without control characters"
            )
        return f"{self.prefix}/{path}" if self.prefix else path

    def directory(self, prefix: str) -> str | None:
        """The key below which a listing of the directory `prefix` looks; `""` is the location itself."""
        trimmed = prefix.rstrip("/")
        return (self.key(trimmed) if trimmed else self.prefix) or None

    def info(self, meta: ObjectMeta) -> ObjectInfo:
        path = meta["path"].removeprefix(f"{self.prefix}/") if self.prefix else meta["path"]
        return ObjectInfo(path, meta["size"], int(meta["last_modified"].timestamp() * 1000), meta["e_tag"])

    def client_for(self, body_bytes: int) -> ObjectStore:
        return self.uploads() if body_bytes > LARGE_BODY_BYTES else self.client


_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
