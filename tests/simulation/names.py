"""The model's own reading of names and records, apart from lakecommit's."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from lakecommit.state import codec


@dataclass(frozen=True, slots=True)
class Owner:
    """The attempt that an object belongs to."""

    query: str
    epoch: int
    task: int
    attempt: str


@dataclass(slots=True)
class ManifestRecord:
    owner: Owner
    number: int
    body: bytes
    files: tuple[str, ...]
    durable_ms: int


@dataclass(slots=True)
class SealRecord:
    """A seal that was stored. `counts` says that its epoch was after the mark when it was created.

    `totals` are the files, rows and bytes that it speaks of.
    """

    query: str
    epoch: int
    digest: bytes
    previous: bytes | None
    fingerprint: str | None
    winners: dict[int, tuple[str, int, bytes]]
    totals: tuple[int, int, int]
    watermark_us: int | None
    backlog: str | None
    sealed_ms: int
    counts: bool = True
    files: tuple[str, ...] = field(default=())
    size_bytes: int = 0
    replaces: bool = False

    @property
    def changes(self) -> bool:
        """Whether the table is another with it."""
        return bool(self.files) or self.replaces

    def manifests_of(self, task: int) -> list[str]:
        """The paths of the manifests of a winner."""
        attempt, count, _ = self.winners[task]
        path = f"_lakecommit/users/{self.query}/writers/{self.epoch:020d}/{task}-{attempt}"
        return [f"{path}-{number}.avro" if number else f"{path}.avro" for number in range(count)]

    def names(self, owner: Owner) -> bool:
        winner = self.winners.get(owner.task)
        return winner is not None and winner[0] == owner.attempt


def owner_of_manifest(path: str) -> tuple[Owner, int]:
    """`_lakecommit/users/<query>/writers/<epoch>/<task>-<attempt>[-<n>].avro`"""
    _, _, query, _, epoch, name = path.split("/")
    task, attempt, *number = name.removesuffix(".avro").split("-")
    return Owner(query, int(epoch), int(task), attempt), int(number[0]) if number else 0


def owner_of_data(path: str, query: str) -> Owner:
    """`<epoch>-<task>-<attempt>-<n>.parquet`"""
    epoch, task, attempt, _ = path.rpartition("/")[2].split("-")
    return Owner(query, int(epoch), int(task), attempt)


def seal_epoch(path: str) -> tuple[str, int]:
    """`_lakecommit/users/<query>/seals/<epoch>.avro`"""
    _, _, query, _, name = path.split("/")
    return query, int(name.removesuffix(".avro"))


def listener_of(path: str) -> tuple[tuple[str, str], int]:
    """`_lakecommit/users/<query>/listeners/<name>/<number>.json`, as (name, user) and number"""
    _, _, query, _, name, number = path.split("/")
    return (name, query), int(number.removesuffix(".json"))


def micros_of(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    return (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)


def read_manifest(path: str, body: bytes, now_ms: int) -> ManifestRecord:
    owner, number = owner_of_manifest(path)
    record = codec.MANIFEST.decode(body, path)
    return ManifestRecord(owner, number, body, tuple(file["path"] for file in record["files"]), now_ms)


def read_seal(path: str, body: bytes) -> SealRecord:
    query, epoch = seal_epoch(path)
    record = codec.SEAL.decode(body, path)
    winners = {each["task"]: (each["attempt"], each["manifests"], each["digest"]) for each in record["winners"]}
    if (record["user"], record["epoch"]) != (query, epoch):
        raise ValueError(f"{path} is of another epoch")
    return SealRecord(
        query=query,
        epoch=epoch,
        digest=codec.digest_of([body]),
        previous=record["previous"],
        fingerprint=record["offsets"],
        winners=winners,
        totals=(record["files"], record["rows"], record["size_bytes"]),
        watermark_us=record["watermark_us"],
        backlog=record["backlog"],
        sealed_ms=record["sealed_ms"],
        replaces=record["replaces"],
    )


def rows_of(body: bytes) -> list[int]:
    """The ids in a simulated data file."""
    return [int(each) for each in body.split(b",")] if body else []


def body_of(rows: list[int]) -> bytes:
    return b",".join(b"%d" % row for row in rows)
