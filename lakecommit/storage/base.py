"""What lakecommit asks of an object store: one small Protocol per verb.

Paths are keys below the table's location, without a leading slash and not escaped. All methods are coroutines, so that
a simulation can interleave callers at every request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Created:
    """The object did not exist and now does, with this body."""

    etag: str | None


@dataclass(frozen=True, slots=True)
class AlreadyThere:
    """Refused: an object with this name exists (412)."""


@dataclass(frozen=True, slots=True)
class Busy:
    """Nothing happened and nothing is known about the name: a concurrent request was in the way (409)."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """The request may or may not have taken effect (time-out, reset, 429, 5xx): look first, then decide."""

    reason: str


CreateOutcome = Created | AlreadyThere | Busy | Unknown


@dataclass(frozen=True, slots=True)
class Found:
    body: bytes
    etag: str | None


@dataclass(frozen=True, slots=True)
class NotModified:
    """The object is there and still has the ETag that the caller knows."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    path: str
    size_bytes: int
    modified_ms: int
    etag: str | None = None


def same_etag(known: str | None, listed: str | None) -> bool:
    """Whether two ETags are equal; a listing may leave the quotes out."""
    return known is not None and listed is not None and known.strip('"') == listed.strip('"')


class Create(Protocol):
    async def create(self, path: str, body: bytes) -> CreateOutcome:
        """One request, create-if-absent, never repeated inside: the outcome is for the caller to judge.

        Raises `AccessDenied` if credentials are refused and `StoreError` for what no retry can mend.
        """


class Put(Protocol):
    async def put(self, path: str, body: bytes | memoryview) -> str | None:
        """Writes the object with a single PUT and returns its ETag. Idempotent, so it is retried inside a bound."""


class Get(Protocol):
    async def get(self, path: str, *, known_etag: str | None = None) -> Found | NotModified | None:
        """The whole object, `None` where there is none, `NotModified` where it still has `known_etag`."""


class GetRange(Protocol):
    async def size(self, path: str) -> int | None:
        """The object's size in bytes (HEAD), `None` where there is none."""

    async def get_range(self, path: str, start: int, length: int) -> bytes: ...


class List(Protocol):
    def list(self, prefix: str, *, start_after: str | None = None) -> AsyncIterator[Sequence[ObjectInfo]]:
        """Objects below the directory `prefix`, in pages, ordered by path within and across pages.

        `start_after` is a full path; only later ones are returned, and it is the store that skips.
        """


class Delete(Protocol):
    async def delete(self, paths: Sequence[str]) -> Sequence[str]:
        """Deletes in bulk. Returns the paths whose deletion is not confirmed; one that did not exist is confirmed."""


class Store(Create, Put, Get, GetRange, List, Delete, Protocol):
    """All verbs together, for code that assembles the parts. A function asks for just the verbs that it uses."""

    @property
    def location(self) -> str:
        """The table's location as the user knows it, free of credentials."""
