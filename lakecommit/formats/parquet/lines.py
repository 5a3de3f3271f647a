"""What an entry of the log says: `v1`, and then a line of JSON for each file, as Spark writes and reads them. Pure.

Spark reads each line by itself and takes no blank ones. It drops lines of directories and ignores fields that it does
not know. Bytes are compared, so that everything here has one spelling.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from lakecommit.errors import CorruptState
from lakecommit.formats.uris import path_to_uri
from lakecommit.model import DataFile

HEADER = b"v1"
# Base names of data files that lakecommit writes: epoch, task, attempt and number.
OWN_NAME = re.compile(rb'"path":"[^"]*?(\d{20})-(\d+)-([0-9a-f]{32})-(\d+)\.parquet"')
_PATH = re.compile(rb'"path":"((?:[^"\\]|\\.)*)"')
_SIZE = re.compile(rb'"size":(\d+)')
_IS_DIRECTORY = b'"isDir":true'


def entry_of(files: Iterable[DataFile], root: str) -> bytes:
    """The entry of an epoch: a function of its files, so that whoever puts it puts the same bytes.

    Precondition: the files are in the order of their tasks and numbers, as their manifests have them.
    """
    return joined(line_of(file, root) for file in files)


def line_of(file: DataFile, root: str) -> bytes:
    return _line(f"{root}/{path_to_uri(file.path)}", file.size_bytes, file.created_ms)


def joined(lines: Iterable[bytes]) -> bytes:
    return b"\n".join([HEADER, *lines])


def lines_of(body: bytes, name: str) -> Sequence[bytes]:
    """The lines of an entry or a compact, verbatim. Raises `CorruptState` if it is none."""
    header, *lines = body.split(b"\n")
    if header.rstrip(b"\r") != HEADER:
        raise CorruptState(
            f"{name} is damaged: it begins with {header[:20]!r} and not with {HEADER.decode()!r}; restore it from a "
            "backup"
        )
    return [line for line in lines if line.strip()]


def own_names(body: bytes) -> Iterator[tuple[int, str, str]]:
    """The epoch, the attempt and the base name of each file of lakecommit's that the entry names."""
    for match in OWN_NAME.finditer(body):
        epoch, task, attempt, number = (part.decode() for part in match.groups())
        yield int(epoch), attempt, f"{epoch}-{task}-{attempt}-{number}.parquet"


def path_in(line: bytes) -> str:
    """The URI of a line's file. Raises `CorruptState` if it has none."""
    match = _PATH.search(line)
    if match is None:
        raise CorruptState(f"a line of Spark's log names no file: {line[:100]!r}; restore the log from a backup")
    found: str = json.loads(b'"' + match[1] + b'"')
    return found


def size_in(line: bytes) -> int | None:
    """How many bytes a line's file has, if it says so."""
    match = _SIZE.search(line)
    return None if match is None else int(match[1])


def is_file(line: bytes) -> bool:
    return _IS_DIRECTORY not in line


def _line(path: str, size_bytes: int, modified_ms: int) -> bytes:
    said = {
        "path": path,
        "size": size_bytes,
        "isDir": False,
        "modificationTime": modified_ms,
        "blockReplication": 1,
        "blockSize": size_bytes or 1,
        "action": "add",
    }
    return json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()


def is_own(line: bytes, epoch: int, *, exactly: bool) -> bool:
    """Whether a line is of lakecommit's epoch; if not `exactly`, also of one before it."""
    match = OWN_NAME.search(line)
    return match is not None and (int(match[1]) == epoch if exactly else int(match[1]) <= epoch)
