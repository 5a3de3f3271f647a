"""Seals that say what the committer's say, and a store that tells what was asked of it."""

import asyncio
from dataclasses import replace

from lakecommit.model import Totals
from lakecommit.state import codec, layout
from tests.lake import QUERY

SEALED_MS = 1_700_000_000_000


def seal(table, epoch, reports, query=QUERY, **details):
    """The epoch is decided and not committed; `details` are further fields of the seal."""
    table.seal(query, epoch, reports)
    path = layout.seal_path(query, epoch)
    plain = codec.decode_seal(asyncio.run(table.store.get(path)).body, path)
    manifests = [codec.decode_manifest(body, "a report") for report in reports for body in report.manifests]
    totals = Totals.of([file for manifest in manifests for file in manifest.files])
    whole = replace(plain, **{"sealed_ms": SEALED_MS, "totals": totals} | details)
    asyncio.run(table.store.put(path, codec.encode_seal(whole)))


class RecordingStore:
    """Passes everything on; `listed` are the prefixes that were listed, `read` the paths that were read.

    A page of a listing has one object, and `names` are those that were taken. What `failures` holds is raised instead,
    one for each read.
    """

    def __init__(self, store):
        self._store = store
        self.failures = []
        self.forget()

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def list(self, prefix, *, start_after=None):
        self.listed.append(prefix)
        async for page in self._store.list(prefix, start_after=start_after):
            for info in page:
                self.names.append(info.path)
                yield [info]

    async def get(self, path, *, known_etag=None):
        if self.failures:
            raise self.failures.pop(0)
        self.read.append(path)
        return await self._store.get(path, known_etag=known_etag)

    def forget(self):
        self.listed, self.names, self.read = [], [], []
