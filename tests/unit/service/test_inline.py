"""Committers without a driver's service: each request is a process of its own that begins with the store."""

from __future__ import annotations

import asyncio

from lakecommit.model import Attempt, AttemptId, Epoch, QueryId, Report, TaskId
from lakecommit.service.dispatch import INLINE_EMPTY_EPOCHS, Committers, Facts
from lakecommit.service.wire import Request, Verb
from lakecommit.state.codec import encode_report
from tests.lake.stores import FakeStore
from tests.unit.formats.delta.fakes import SCHEMA

QUERY = QueryId("11111111-2222-3333-4444-555555555555")


class Store(FakeStore):
    """Nothing is answered at once."""

    def __init__(self) -> None:
        super().__init__()
        self.page_size = 1000

    async def create(self, path, body):
        await asyncio.sleep(0.001)
        return await super().create(path, body)

    async def get(self, path, *, known_etag=None):
        await asyncio.sleep(0)
        return await super().get(path, known_etag=known_etag)


def requests_of_an_epoch_without_rows(store, number) -> int:
    report = Report(Attempt(QUERY, Epoch(number), TaskId(0), AttemptId(f"{number:032x}")))
    request = Request(
        Verb.COMMIT_EPOCH,
        {"path": "memory://table"},
        SCHEMA,
        streaming=True,
        epoch=number,
        reports=(encode_report(report),),
    )
    committers = Committers(inline=True, open_at=lambda *location, **more: store)
    store.requests.clear()
    asyncio.run(committers.answer(request, Facts()))
    return len(store.requests)


def test_epochs_without_rows_never_cost_more_than_a_few_of_them_do():
    store = Store()
    requests = [requests_of_an_epoch_without_rows(store, number) for number in range(4 * INLINE_EMPTY_EPOCHS)]
    assert max(requests) < INLINE_EMPTY_EPOCHS + 10
    versions = [path for path in store.objects if path.startswith("_delta_log/")]
    assert len(versions) == 1 + 4, "the marks of sixteen in each"
