"""A Delta table that is nothing but its log and empty files, on a store whose clock is the test's."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import uuid
from typing import Any

from lakecommit.formats.delta.table import DeltaFormat
from lakecommit.leases.who import Who
from lakecommit.state.lease_layout import LeaseName
from lakecommit.storage.counting import CountingStore
from lakecommit.storage.location import open_store
from lakecommit.vacuuming.asked import DAY_MS, Asked
from lakecommit.vacuuming.vacuum import Means, TableVacuum
from tests.lake import SCHEMA
from tests.lake.clocks import FakeClock
from tests.lake.stores import StampingStore

PROTOCOL = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": []}
METADATA = {
    "id": "5e1f0a52-7c55-4c62-9f10-000000000000",
    "format": {"provider": "parquet", "options": {}},
    "schemaString": SCHEMA,
    "partitionColumns": [],
    "configuration": {},
}
VECTORS = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
_PLAIN = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def run(work: Any) -> Any:
    return asyncio.run(work)


def add(path: str, vector: Any = None, **more: Any) -> dict[str, Any]:
    said = {"path": path, "partitionValues": {}, "size": 10, "modificationTime": 1, "dataChange": True, **more}
    return {"add": said | ({"deletionVector": vector} if vector else {})}


def remove(path: str, vector: Any = None, **more: Any) -> dict[str, Any]:
    said = {"path": path, "deletionTimestamp": 1, "dataChange": True, "size": 10, **more}
    return {"remove": said | ({"deletionVector": vector} if vector else {})}


def cdc(path: str) -> dict[str, Any]:
    return {"cdc": {"path": path, "partitionValues": {}, "size": 5, "dataChange": False}}


def vector_file(number: int) -> str:
    return f"deletion_vector_{uuid.UUID(int=number)}.bin"


def vector(number: int, at: int = 1, *, directory: str = "") -> dict[str, Any]:
    """One in the file of this number."""
    plain = base64.b85encode(uuid.UUID(int=number).bytes).decode()
    place = directory + plain.translate(str.maketrans(_PLAIN, _Z85))
    return {"storageType": "u", "pathOrInlineDv": place, "offset": at, "sizeInBytes": 4, "cardinality": 1}


class Table:
    """Each version is a day younger than the one before, and the newest is of now, unless a test says more."""

    def __init__(self, *versions: list[dict[str, Any]], protocol: Any = PROTOCOL, metadata: Any = METADATA) -> None:
        self.clock = FakeClock()
        self.store = CountingStore(StampingStore(open_store(f"memory://{uuid.uuid4().hex}/table", {}), self.clock))
        self.numbers = iter(range(1, 10**6))
        self.version = -1
        self.commit({"protocol": {**PROTOCOL, **protocol}}, {"metaData": {**METADATA, **metadata}})
        for actions in versions:
            self.pass_days(1)
            self.commit(*actions)

    def pass_days(self, days: float) -> None:
        self.clock.wall += int(days * DAY_MS)

    def commit(self, *actions: dict[str, Any]) -> None:
        """The next version. The files that it names are there."""
        self.version += 1
        body = b"".join(json.dumps(action).encode() + b"\n" for action in actions)
        self.put(f"_delta_log/{self.version:020d}.json", body)
        for action in actions:
            for kind in ("add", "cdc"):
                if kind in action and not re.match(r"/|\w+:", action[kind]["path"]):
                    self.put(action[kind]["path"])

    def put(self, path: str, body: bytes = b"{}") -> None:
        run(self.store.put(path, body))

    def checkpoint(self, *actions: dict[str, Any], at: int | None = None, protocol: Any = PROTOCOL) -> None:
        """One that holds these files, at the newest version."""
        version = self.version if at is None else at
        sides = ("readerFeatures", "writerFeatures")
        features = {side: ["v2Checkpoint", *protocol.get(side, ())] for side in sides}
        head = [{"checkpointMetadata": {"version": version}}, {"protocol": {**PROTOCOL, **features}}]
        body = [json.dumps(action) for action in (*head, {"metaData": METADATA}, *actions)]
        self.put(f"_delta_log/{version:020d}.checkpoint.{uuid.UUID(int=version)}.json", "\n".join(body).encode())
        self.put("_delta_log/_last_checkpoint", json.dumps({"version": version, "size": 1}).encode())

    def forget_before(self, version: int) -> None:
        run(self.store.delete([f"_delta_log/{number:020d}.json" for number in range(version)]))

    def lease(self, version: int, ttl_s: int = 21_600, lease: str = "a" * 32) -> str:
        self.put(LeaseName(version, ttl_s, lease, self.new_id()).path)
        return lease

    def new_id(self) -> str:
        return f"{next(self.numbers):032x}"

    def format(self, store: Any = None) -> Any:
        return DeltaFormat(store or self.store, clock=self.clock, new_id=self.new_id, random=lambda: 0.5)

    def vacuum(self, store: Any = None, **asked: Any) -> TableVacuum:
        means = Means(Who("a test"), self.new_id, self.clock, lambda: 0.5)
        return TableVacuum(store or self.store, self.format(store), Asked(**asked), means)

    def apply(self, **asked: Any) -> Any:
        done = run(self.vacuum(**asked).apply())
        assert done.well
        return done

    def survey(self, **asked: Any) -> Any:
        return run(self.vacuum(**asked).survey())

    def paths(self, prefix: str = "") -> list[str]:
        async def listed() -> list[str]:
            return [info.path async for page in self.store.list(prefix) for info in page]

        return run(listed())

    def files(self) -> set[str]:
        """All but the log and the state."""
        return {path for path in self.paths() if not path.startswith(("_delta_log/", "_lakecommit/"))}

    def marks(self) -> list[str]:
        """The objects of vacuums, without what their names begin with and the ids of runs."""
        return sorted(
            path.removeprefix("_lakecommit/vacuum/").partition("-")[0] for path in self.paths("_lakecommit/vacuum")
        )
