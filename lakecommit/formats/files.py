"""Committed files as readers open them that know no log: DuckDB, pyarrow, Polars. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from lakecommit.formats.uris import path_of_uri

# What Hadoop's users call a store, and what everybody calls it.
_SCHEMES = {"s3a": "s3", "s3n": "s3"}


@dataclass(frozen=True, slots=True)
class CommittedFile:
    """`location` is a path on local disk or a URI whose key is spelled as it is, without escapes. `size_bytes` is None
    where the log does not say."""

    location: str
    size_bytes: int | None = None


def reader_location(location: str) -> str:
    """A table's location in the spelling that all of these readers take."""
    scheme, slashes, rest = location.partition("://")
    return f"{_SCHEMES.get(scheme, scheme)}{slashes}{rest}"


def location_below(location: str, key: str) -> str:
    """Where the object `key` below a table's location is."""
    return f"{reader_location(location).rstrip('/')}/{key}"


def location_of_uri(uri: str) -> str:
    """Where a file is that a log names by a whole URI."""
    decoded = path_of_uri(uri)
    if decoded.startswith("file:"):
        return "/" + decoded.removeprefix("file:").lstrip("/")
    return reader_location(decoded)
