"""Where the demo's table is: a directory, or a bucket of a local S3."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lakecommit.clock import SystemClock
from lakecommit.formats.base import TableState
from lakecommit.formats.registry import format_at
from lakecommit.storage.base import Found, Store
from lakecommit.storage.location import open_store
from lakecommit.testing.s3 import LocalS3


@dataclass(frozen=True)
class Place:
    """`s3` is None on local disk. `store_options` are the ones that reach the table."""

    location: str
    store_options: Mapping[str, str]
    s3: LocalS3 | None

    @property
    def spark_options(self) -> dict[str, str]:
        return {f"store.{key}": value for key, value in self.store_options.items()}

    @property
    def deltalake_options(self) -> dict[str, str]:
        return {f"aws_{key}" if key != "allow_http" else key: value for key, value in self.store_options.items()}

    def store(self) -> Store:
        return open_store(self.location, self.store_options)

    def on_disk(self, scratch: Path) -> Path:
        """The table as a directory, for a reader that has no S3 client: on S3 a copy of its objects."""
        return Path(self.location) if self.s3 is None else asyncio.run(_copy(self.store(), scratch / "copy"))


@contextmanager
def a_place(scratch: Path, *, on_s3: bool) -> Iterator[Place]:
    if not on_s3:
        yield Place(str(scratch / "orders"), {}, None)
        return
    with LocalS3() as s3:
        s3.create_bucket("lake")
        yield Place("s3://lake/orders", s3.store_options(), s3)


async def table_in(store: Store) -> TableState | None:
    """What the table is now."""
    table_format = await format_at(store, clock=SystemClock(), new_id=lambda: str(uuid.uuid4()), random=random.random)
    return await table_format.open()


async def _copy(store: Store, target: Path) -> Path:
    async for page in store.list(""):
        for info in page:
            found = await store.get(info.path)
            if isinstance(found, Found):
                path = target / info.path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(found.body)
    return target
