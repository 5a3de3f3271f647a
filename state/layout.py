"""The grammar of every name that lakecommit writes below a table.

    <partition dirs>/<epoch>-<task>-<attempt>-<n>.parquet                 a data file
    <random prefix>/<epoch>-<task>-<attempt>-<n>.parquet                  the same, where the table spreads its files
    _lakecommit/users/<query>/writers/<epoch>/<task>-<attempt>[-<n>].avro  a manifest (no number for the first)
    _lakecommit/users/<query>/seals/<epoch>.avro                           a seal
    _lakecommit/users/<query>/listeners/<name>/<number>.json               how far a listener was told, and its state

Epochs and numbers have twenty digits, so that a listing is ordered by them. Attempts are 32 hexadecimal digits, so that
every name parses in one way only. Names are checked when they are made and again when they are read.
"""

from __future__ import annotations

import re

from lakecommit.errors import CorruptState
from lakecommit.model import Attempt, AttemptId, Epoch, QueryId, TaskId

ROOT = "_lakecommit"
MAX_EPOCH = 2**63 - 1

_QUERY = re.compile(r"[0-9A-Za-z-]{1,64}")
_PREFIX = re.compile(r"[0-9A-Za-z]{1,32}")
_ATTEMPT = re.compile(r"[0-9a-f]{32}")
_MANIFEST = re.compile(
    rf"{ROOT}/users/([0-9A-Za-z-]{{1,64}})/writers/([0-9]{{20}})/(0|[1-9][0-9]{{0,9}})-([0-9a-f]{{32}})(?:-([1-9][0-9]{{0,9}}))?\.avro"
)
_QUERY_STATE = re.compile(rf"{ROOT}/users/([0-9A-Za-z-]{{1,64}})/(?:writers|seals|listeners)/")
_PLACE = re.compile(rf"{ROOT}/users/([0-9A-Za-z-]{{1,64}})/listeners/([0-9A-Za-z-]{{1,64}})/([0-9]{{20}})\.json")
_SEAL = re.compile(rf"{ROOT}/users/([0-9A-Za-z-]{{1,64}})/seals/([0-9]{{20}})\.avro")


def queries_prefix() -> str:
    return f"{ROOT}/users"


def query_prefix(query: QueryId) -> str:
    return f"{ROOT}/users/{_checked_query(query)}"


def parse_query(path: str) -> QueryId | None:
    """Whose state an object is, None where its name is not of anybody's."""
    match = _QUERY_STATE.match(path)
    return None if match is None else QueryId(match[1])


def writers_prefix(query: QueryId, epoch: Epoch | None = None) -> str:
    """The directory of a query's manifests, or of one epoch's."""
    directory = f"{ROOT}/users/{_checked_query(query)}/writers"
    return directory if epoch is None else f"{directory}/{_digits(epoch)}"


def seals_prefix(query: QueryId) -> str:
    return f"{ROOT}/users/{_checked_query(query)}/seals"


def seal_path(query: QueryId, epoch: Epoch) -> str:
    return f"{seals_prefix(query)}/{_digits(epoch)}.avro"


def listeners_prefix(query: QueryId) -> str:
    return f"{ROOT}/users/{_checked_query(query)}/listeners"


def places_prefix(query: QueryId, name: str) -> str:
    """The directory of one listener's places."""
    if not is_listener_name(name):
        raise ValueError(f"not a listener's name: {name!r}")
    return f"{listeners_prefix(query)}/{name}"


def place_path(query: QueryId, name: str, number: int) -> str:
    return f"{places_prefix(query, name)}/{number:020d}.json"


def is_listener_name(name: str) -> bool:
    """Up to 64 letters, digits and hyphens, as of a query."""
    return _QUERY.fullmatch(name) is not None


def is_attempt(attempt: Attempt) -> bool:
    """Whether objects can have its name."""
    return (
        _QUERY.fullmatch(attempt.query) is not None
        and 0 <= attempt.epoch <= MAX_EPOCH
        and 0 <= attempt.task < 10**10
        and _ATTEMPT.fullmatch(attempt.id) is not None
    )


def manifest_path(attempt: Attempt, number: int) -> str:
    _check_attempt(attempt)
    suffix = f"-{number}" if number else ""
    return f"{writers_prefix(attempt.query, attempt.epoch)}/{attempt.task}-{attempt.id}{suffix}.avro"


def data_file_name(attempt: Attempt, number: int) -> str:
    """The base name of an attempt's data file; its directory is made of its partition values, or at random."""
    _check_attempt(attempt)
    return f"{_digits(attempt.epoch)}-{attempt.task}-{attempt.id}-{number}.parquet"


def parse_manifest_path(path: str) -> tuple[Attempt, int] | None:
    """The attempt and number of a manifest's name, None where the name is not a manifest's."""
    match = _MANIFEST.fullmatch(path)
    if match is None or int(match[2]) > MAX_EPOCH:
        return None
    query, epoch, task, attempt, number = match.groups()
    owner = Attempt(QueryId(query), Epoch(int(epoch)), TaskId(int(task)), AttemptId(attempt))
    return owner, int(number or 0)


def parse_seal_path(path: str) -> tuple[QueryId, Epoch] | None:
    match = _SEAL.fullmatch(path)
    if match is None or int(match[2]) > MAX_EPOCH:
        return None
    return QueryId(match[1]), Epoch(int(match[2]))


def parse_place_path(path: str) -> tuple[QueryId, str, int] | None:
    """The query, the listener's name and the number; None where the name is not a place's."""
    match = _PLACE.fullmatch(path)
    return None if match is None else (QueryId(match[1]), match[2], int(match[3]))


def check_data_path(path: str, attempt: Attempt) -> None:
    """Raises `CorruptState` unless `path` is a name that `attempt`, and no other attempt, may have written.

    Whatever is read, committed or deleted on behalf of an attempt passes this first, so that a damaged or hostile
    manifest can name nothing outside of its own attempt.
    """
    *directories, name = path.split("/")
    stem = f"{_digits(attempt.epoch)}-{attempt.task}-{attempt.id}-"
    number = name.removeprefix(stem).removesuffix(".parquet")
    proper_name = name == f"{stem}{number}.parquet" and re.fullmatch(r"0|[1-9][0-9]{0,9}", number) is not None
    # A partition directory is `column=value`, which "", ".", ".." and the directories of logs and state are not. Nor
    # is any of them made of letters and digits alone, as the one directory of a file that is spread by a random prefix.
    partitions = all("=" in part[1:] for part in directories)
    prefix = len(directories) == 1 and _PREFIX.fullmatch(directories[0]) is not None
    if not (proper_name and (partitions or prefix)):
        raise CorruptState(
            f"a manifest names a file outside of its own attempt: {path!r} is no data file of epoch {attempt.epoch}, "
            f"task {attempt.task}, attempt {attempt.id}; the state under {ROOT} was damaged or tampered with: nothing "
            "was read or deleted; restore the object from a backup or remove the attempt by hand"
        )


def _digits(epoch: Epoch) -> str:
    if not 0 <= epoch <= MAX_EPOCH:
        raise ValueError(f"epoch {epoch} is out of range")
    return f"{epoch:020d}"


def _checked_query(query: QueryId) -> str:
    if _QUERY.fullmatch(query) is None:
        raise ValueError(f"not a query: {query!r}")
    return query


def _check_attempt(attempt: Attempt) -> None:
    if not is_attempt(attempt):
        raise ValueError(f"not an attempt: {attempt}")
