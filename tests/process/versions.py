"""Tables that are a log and empty files, whose versions others than lakecommit have put: for vacuums."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from lakecommit.concurrency.parallel import in_parallel
from lakecommit.demo.place import Place
from lakecommit.formats.plan import BATCH
from lakecommit.formats.uris import path_to_uri
from tests.lake import SCHEMA
from tests.lake.directory import Directory
from tests.spark_log.entries import SinkFile, encode
from tests.unit.vacuuming.tools import METADATA, PROTOCOL, add, remove


class Versions:
    """Of a Delta table, or of a Parquet directory of batch writes, each of whose versions is the whole list."""

    def __init__(self, place: Place, table_format: str) -> None:
        self._place = place
        self._body = {"delta": self._of_delta, "parquet": self._of_batches}[table_format]
        self._live: list[str] = []
        self._number = 0
        if table_format == "parquet":
            table = Directory.at(place.location, options=dict(place.store_options))
            asyncio.run(table.format().create(SCHEMA, (), {}, BATCH))

    def put(self, added: Sequence[str] = (), removed: Sequence[str] = ()) -> None:
        """The next version, with an empty file for each that it adds."""
        gone = set(removed)
        self._live = [name for name in self._live if name not in gone] + list(added)
        path, body = self._body(added, removed)

        async def put() -> None:
            store = self._place.store()
            await in_parallel(lambda name: store.put(name, b""), added)
            await store.put(path, body)

        asyncio.run(put())
        self._number += 1

    def _of_delta(self, added: Sequence[str], removed: Sequence[str]) -> tuple[str, bytes]:
        actions = [{"protocol": PROTOCOL}, {"metaData": METADATA}] if self._number == 0 else []
        actions += [remove(path_to_uri(name)) for name in removed]
        actions += [add(path_to_uri(name)) for name in added]
        return f"_delta_log/{self._number:020d}.json", "\n".join(map(json.dumps, actions)).encode()

    def _of_batches(self, added: Sequence[str], removed: Sequence[str]) -> tuple[str, bytes]:
        root = self._place.location.replace("s3://", "s3a://")
        root = root if self._place.s3 is not None else f"file://{root}"
        lines = (SinkFile(f"{root}/{path_to_uri(name)}", 1, 1) for name in self._live)
        return f"_spark_metadata/{self._number}.compact", encode(lines)
