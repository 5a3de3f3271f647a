"""The first record of a directory: of a new one, or of one whose log Spark's own sink has begun.

A log hides every file that it does not name. So a directory that holds files of others is refused, and the log of
Spark's sink is taken over only if all that it names is what the record says.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from lakecommit.errors import InvalidInput
from lakecommit.formats import registry
from lakecommit.formats.base import FormatStore
from lakecommit.formats.parquet.evidence import TAIL_BYTES
from lakecommit.formats.parquet.fit import new_problems, no_longer_fits
from lakecommit.formats.parquet.lines import lines_of, path_in
from lakecommit.formats.parquet.log import list_log
from lakecommit.formats.parquet.names import LOG, LogListing, inferred_interval
from lakecommit.formats.parquet.record import Record
from lakecommit.formats.plan import BATCH
from lakecommit.formats.uris import path_of_uri, path_to_uri
from lakecommit.schema import Struct, parse, to_json
from lakecommit.storage.location import parse_location

DEFAULT_INTERVAL = 10
_OWN_FILE = re.compile(r"\d{20}-\d+-[0-9a-f]{32}-\d+\.parquet(#\d+)?")
_SCHEMA_KEY = b"org.apache.spark.sql.parquet.row.metadata"
_MAX_FOOTER_BYTES = 16 * 1024**2


async def adopted_or_new(
    store: FormatStore,
    table_id: str,
    data: Struct,
    partition_columns: tuple[str, ...],
    properties: Mapping[str, str],
    owner: str | None,
) -> Record:
    """The record to create. Raises `InvalidInput` if the directory is somebody else's."""
    if problems := new_problems(data, partition_columns):
        raise InvalidInput(f"the data cannot be written to {store.location}: " + "; ".join(problems))
    listing = await list_log(store)
    setting = int(properties.get("compactInterval", DEFAULT_INTERVAL))
    record = Record(
        number=0,
        table_id=table_id,
        owner=owner,
        schema=to_json(data),
        partition_columns=partition_columns,
        root=root_of(store.location, properties.get("readPath")),
        interval=1 if owner == BATCH else setting,
    )
    if listing.numbers and not listing.records:
        return await _adopted(store, listing, record, setting)
    if not listing.records:
        await _check_unused(store)
    return record


def root_of(location: str, read_path: str | None = None) -> str:
    """A location as Spark's readers name it, or as `read_path` says: they compare the names in the log with their own,
    letter by letter, and theirs are URIs.

    Raises `InvalidInput` if that cannot be known.
    """
    if read_path is not None:
        scheme, slashes, rest = read_path.rstrip("/").rpartition("://")
        if not slashes:
            # A plain path, or what is a URI without a host.
            return rest if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", rest) else "file://" + path_to_uri(rest)
        host, slash, path = rest.partition("/")
        return f"{scheme}://{host}" + (path_to_uri(slash + path) if slash else "")
    kind, bucket, path = parse_location(location)
    if kind == "local":
        return "file://" + path_to_uri(path.rstrip("/"))
    if kind == "az" and "@" not in bucket:
        raise InvalidInput(
            f"what Spark's readers call {location} is not known here; give it as the option readPath, such as "
            "abfss://container@account.dfs.core.windows.net/directory"
        )
    scheme = "s3a" if kind == "s3" else location.partition(":")[0]
    return f"{scheme}://{bucket}/{path_to_uri(path)}".rstrip("/")


async def _check_unused(store: FormatStore) -> None:
    for name in registry.NAMES:
        log = registry.format_named(name).log
        if log != LOG and await registry.has_log(store, name):
            title = registry.format_named(name).title
            raise InvalidInput(
                f"{store.location} is a {title} table ({log} is there); leave tableFormat out, or write to another "
                "directory"
            )
    async for page in store.list(""):
        for info in page:
            *directories, file = info.path.split("/")
            hidden = any(part.startswith(("_", ".")) and "=" not in part for part in [*directories, file])
            if not hidden and not _OWN_FILE.fullmatch(file):
                raise InvalidInput(
                    f"{store.location} holds files that no log names, {info.path} among them, and with a log Spark's "
                    "readers would not see them any more; delete them if a failed write has left them, or write to an "
                    "empty directory"
                )
        return


async def _adopted(store: FormatStore, listing: LogListing, record: Record, setting: int) -> Record:
    """What Spark's sink has begun is gone on with: same interval, same root, same partition columns."""
    if record.owner == BATCH:
        raise InvalidInput(
            f"{store.location} belongs to a stream of Spark's file sink; write batches to another directory"
        )
    if listing.holes:
        raise InvalidInput(
            f"the log of {store.location} has no entries {list(listing.holes)[:20]}, so that Spark cannot read it; "
            "repair it, or write to another directory"
        )
    newest = await _newest_file(store, listing)
    interval = inferred_interval(listing.compacts, setting)
    if newest is None:
        return _with(record, record.root, interval)
    root, key = _split(newest, record.partition_columns, store.location)
    if not newest.endswith(".parquet"):
        raise InvalidInput(f"the log of {store.location} names {newest}, which is no Parquet file: use another sink")
    footer = await _schema_in(store, key)
    if footer is None:
        raise InvalidInput(
            f"the log of {store.location} names {newest}, which is not there under {key}: it was written under another "
            "name of the directory, or its files are gone; write to another directory"
        )
    values = {name.lower() for name in record.partition_columns}
    files = Struct(tuple(field for field in parse(record.schema).fields if field.name.lower() not in values))
    if problems := no_longer_fits(footer, files):
        raise InvalidInput(
            f"the newest file of {store.location} does not fit the data: {'; '.join(problems)}; write rows that fit, "
            "or write to another directory"
        )
    return _with(record, root, interval)


def _with(record: Record, root: str, interval: int) -> Record:
    return Record(0, record.table_id, record.owner, record.schema, record.partition_columns, root.rstrip("/"), interval)


async def _newest_file(store: FormatStore, listing: LogListing) -> str | None:
    """The last file that the log names; None where it names none."""
    for number in sorted(listing.numbers, reverse=True):
        info = listing.info(number)
        assert info is not None
        start = max(0, info.size_bytes - TAIL_BYTES)
        tail = await store.get_range(info.path, start, info.size_bytes - start)
        lines: Sequence[bytes] = lines_of(tail, info.path) if start == 0 else tail.split(b"\n")[1:]
        if lines:
            return path_in(lines[-1])
        if number in listing.compacts:
            return None
    return None


def _split(uri: str, partition_columns: tuple[str, ...], location: str) -> tuple[str, str]:
    """The directory that a file's URI begins with, and its key below it."""
    parts = uri.split("/")
    values = len(partition_columns)
    directories = parts[len(parts) - 1 - values : -1]
    named = [path_of_uri(part).partition("=")[0].lower() for part in directories]
    deeper = values < len(parts) - 1 and "=" in parts[len(parts) - 2 - values]
    if named != [name.lower() for name in partition_columns] or deeper:
        raise InvalidInput(
            f"the log of {location} names {uri}, whose directories do not fit partitionBy "
            f"({', '.join(partition_columns) or 'which is empty'}): give the columns that the directory has"
        )
    return "/".join(parts[: len(parts) - 1 - values]), path_of_uri("/".join([*directories, parts[-1]]))


async def _schema_in(store: FormatStore, key: str) -> Struct | None:
    """The schema that Spark has written into a file; None where there is no such file."""
    size_bytes = await store.size(key)
    if size_bytes is None:
        return None
    length = min(size_bytes, TAIL_BYTES)
    tail = await store.get_range(key, size_bytes - length, length)
    needed = int.from_bytes(tail[-8:-4], "little") + 8
    if needed > length and needed <= min(size_bytes, _MAX_FOOTER_BYTES):
        tail = await store.get_range(key, size_bytes - needed, needed)
    try:
        metadata = pq.read_metadata(_Tail(tail, size_bytes)).metadata or {}
        return parse(metadata[_SCHEMA_KEY].decode())
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise InvalidInput(
            f"{store.location}/{key} is no Parquet file that Spark wrote ({error}): write to another directory"
        ) from error


class _Tail(io.RawIOBase):
    """The end of a file, for who reads no more of it."""

    def __init__(self, tail: bytes, size_bytes: int) -> None:
        self._tail, self._size, self._at = tail, size_bytes, 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0 if whence == 0 else self._at if whence == 1 else self._size)
        return self._at

    def read(self, size: int = -1) -> bytes:
        start = self._at - (self._size - len(self._tail))
        if start < 0:
            raise OSError("only the end of the file is here")
        piece = self._tail[start:] if size < 0 else self._tail[start : start + size]
        self._at += len(piece)
        return piece
