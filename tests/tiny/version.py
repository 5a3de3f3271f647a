"""A version of a tiny table: its body, and what the table is after it. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lakecommit.clock import Moment
from lakecommit.formats.change import Change, Held, Kind, RestsOn
from lakecommit.formats.evidence import Vacuums
from lakecommit.formats.reading import GoneFile, ReadFile
from lakecommit.formats.upkeep import LogTail
from lakecommit.formats.vacuuming import Named

LOG = "_tiny_log"


@dataclass(frozen=True, slots=True)
class TinyState:
    version: int
    etag: str | None
    digest: bytes
    table: Mapping[str, Any]
    marks: Mapping[str, int]
    mark_times: Mapping[str, int]
    looked: Moment
    followed_from: int = field(default=0, compare=False)
    vacuums: Vacuums = field(default=Vacuums(), compare=False)
    rewritten: int = 0
    compacted: frozenset[str] = frozenset()
    tail: LogTail = field(default_factory=LogTail)

    @property
    def owner(self) -> str | None:
        return None

    @property
    def table_id(self) -> str:
        return str(self.table["id"])

    @property
    def schema(self) -> str:
        return str(self.table["schema"])

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return tuple(self.table["partition_columns"])

    def mark(self, application_id: str) -> int | None:
        return self.marks.get(application_id)

    def mark_set_ms(self, application_id: str) -> int | None:
        return self.mark_times.get(application_id)


@dataclass(frozen=True, slots=True)
class TinySelection:
    version: int
    paths: tuple[str, ...]
    size_bytes: int
    kept: frozenset[str] = frozenset()

    @property
    def files(self) -> int:
        return len(self.paths)

    def close(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class TinyChange:
    state: TinyState
    said: Mapping[str, Any]

    @property
    def version(self) -> int:
        return self.state.version

    @property
    def committed_ms(self) -> int:
        return int(self.said["at_ms"])

    @property
    def operation(self) -> str:
        return str(self.said["kind"])

    def adds(self) -> Iterator[tuple[ReadFile, bool]]:
        return ((read_file(file), True) for file in self.said.get("adds", ()))

    def removes(self) -> Iterator[GoneFile]:
        return (GoneFile(path, "", True) for path in self.said.get("removes", ()))


def read_file(added: Mapping[str, Any]) -> ReadFile:
    """A file as a version has added it."""
    names = ("path", "size_bytes", "partition_values", "rows", "stats")
    return ReadFile(**{name: added[name] for name in names if name in added}, modified_ms=added["created_ms"])


@dataclass(frozen=True, slots=True)
class TinyEvolution:
    schema: str


def live_files(said: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The files that are left after all these versions, with their sizes."""
    live: dict[str, int] = {}
    for version in said:
        for path in version.get("removes", ()):
            live.pop(path, None)
        live.update({file["path"]: file["size_bytes"] for file in version.get("adds", ())})
    return live


def named_in(said: Mapping[str, Any]) -> list[Named]:
    """All files of a version, for a vacuum."""
    gone = [Named(path, live=False) for path in said.get("removes", ())]
    return [*gone, *(Named(file["path"], live=True, size_bytes=file["size_bytes"]) for file in said.get("adds", ()))]


def path_of(version: int) -> str:
    return f"{LOG}/{version:020d}"


def first_body(table: Mapping[str, Any], change_id: str, now: Moment) -> bytes:
    return encode({"id": change_id, "kind": "create", "at_ms": now.wall_ms, "table": table})


def body_of(state: TinyState, change: Change, now: Moment) -> bytes:
    evolved = {}
    if isinstance(change.evolves, TinyEvolution):
        evolved = {"table": {**state.table, "schema": change.evolves.schema}}
    return encode(
        {
            **evolved,
            "id": change.id,
            "kind": change.kind.name,
            "at_ms": now.wall_ms,
            "blind": change.rests_on is RestsOn.NOTHING,
            "adds": [asdict(file) for file in change.adds],
            "removes": list(change.removes.paths) if isinstance(change.removes, TinySelection) else [],
            "marks": [list(mark) for mark in (*change.marks, *change.kept_marks)],
            "kept": [application_id for application_id, _ in change.kept_marks],
            "past": dict(change.past_marks),
            "holds": [asdict(each) for each in change.holds],
            "user_metadata": change.user_metadata,
        }
    )


def after(state: TinyState | None, body: bytes, etag: str | None, looked: Moment) -> TinyState:
    """What the table is once the version of `body` follows `state`; None before the first."""
    said = json.loads(body)
    if state is None:
        state = TinyState(-1, None, b"", said["table"], {}, {}, looked)
    marks = {application_id: mark for application_id, mark in said.get("marks", ())}
    return replace(
        state,
        version=state.version + 1,
        etag=etag,
        digest=hashlib.sha256(body).digest(),
        table=said.get("table") or state.table,
        marks={**state.marks, **marks},
        mark_times={**state.mark_times, **dict.fromkeys(marks, said["at_ms"])},
        looked=looked,
    )


def kind_of(said: Mapping[str, Any]) -> Kind:
    """Those that others wrote hold nothing, as an append would that says nothing."""
    return Kind.__members__.get(said["kind"], Kind.APPEND_EPOCHS)


def held_by(said: Mapping[str, Any], query: str) -> Held | None:
    for each in said.get("holds", ()):
        if each["query"] == query:
            run = each["run"]
            return Held(
                query=each["query"],
                run=None if run is None else (run[0], run[1]),
                again=tuple(each["again"]),
                settled=tuple((first, last) for first, last in each["settled"]),
                left_out=tuple(each["left_out"]),
                name=each["name"],
                compacted=each["compacted"],
            )
    return None


def encode(said: Mapping[str, Any]) -> bytes:
    return json.dumps(said, separators=(",", ":")).encode()
