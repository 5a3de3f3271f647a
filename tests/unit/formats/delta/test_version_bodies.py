"""What lakecommit writes into a Delta log, byte for byte: whatever makes a version, other engines read the same.

`tests/golden/delta-versions-1.json` has the versions of each story as text. It is never rewritten; a change of what is
written is a file with the next number, which has the stories that have changed.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest

from lakecommit.committing.table import TableCommitter
from lakecommit.formats.delta.write.version import ENGINE_INFO
from lakecommit.model import QueryId
from lakecommit.progress.settings import Txn
from lakecommit.recovering.giving_up import settle
from lakecommit.recovering.passed import commit_passed
from lakecommit.recovering.replaced import commit_replaced
from lakecommit.releasing.batches import fence
from tests.lake import ASYNCHRONOUS, SETTINGS, Lake, Named, hold
from tests.lake.stores import SlowStore
from tests.lake.virtual_time import run_virtually

from .fakes import SCHEMA, txn

GOLDEN = [Path(__file__).parents[3] / "golden" / f"delta-versions-{number}.json" for number in (1, 2)]
# As they were recorded.
QUERY = QueryId("11111111-2222-3333-4444-555555555555")
OTHER = QueryId("99999999-2222-3333-4444-555555555555")
PARTITIONED = replace(SETTINGS, partition_columns=("region",), user_metadata='of the "night"', blind=True)
NAMED = replace(SETTINGS, query_name="orders", user_metadata="mine")


class FullStore(SlowStore):
    """Data files are there as soon as their manifests name them."""

    async def size(self, path):
        return 100 if path.endswith(".parquet") else await super().size(path)


class Story(Lake):
    def __init__(self, clock) -> None:
        super().__init__(clock, FullStore(clock), schema=SCHEMA, tasks=(Named(),), numbers=itertools.count())

    async def epoch(self, committer, epoch, *tasks, query=QUERY, **more):
        return await super().epoch(committer, epoch, *tasks, query=query, offsets=f"offsets of {epoch}", **more)

    async def batch(self, committer, number, settings=SETTINGS, txn=None):
        query = QueryId(f"batch-{number}")
        planned = await committer.plan(SCHEMA, settings, afresh=True)
        reports = [await self.report(planned, 0, 0, Named(), query=query)]
        await committer.commit_batch(query, reports, schema=SCHEMA, settings=settings, txn=txn)

    def foreign(self, version, *actions):
        self.store.put_commit(version, {"commitInfo": {"operation": "WRITE"}}, *actions)


async def streams(story):
    """An epoch alone; several epochs of two queries in one version, one of them with a name and a watermark."""
    committer = story.committer()
    await story.epoch(committer, 0, Named(2))
    await story.epoch(committer, 0, query=OTHER)
    story.store.version_ms = 5000
    for epoch in (1, 2, 3):
        await story.epoch(
            committer, epoch, Named(event_time_us=7_000_000 + epoch), Named(), settings=NAMED, pace=ASYNCHRONOUS
        )
    await story.epoch(committer, 1, query=OTHER, settings=replace(NAMED, query_name=None), pace=ASYNCHRONOUS)
    await committer.drain()


async def batches(story):
    committer = story.committer()
    await story.batch(committer, 1, PARTITIONED, Txn("nightly", 3))
    await story.batch(committer, 2, replace(PARTITIONED, partition_columns=None, user_metadata=None))


async def fences(story):
    await story.batch(story.committer(), 1)
    await fence(story.format(), [("batch-9", 0), (str(QUERY), 4)], story.new_id)


async def repairs(story):
    """A version of a stream is written over, and made up for by `recover`."""
    committer = story.committer()
    for epoch in range(3):
        await story.epoch(committer, epoch)
    story.foreign(2)
    await commit_replaced(story.store, story.format(), QUERY, clock=story.clock, new_id=story.new_id)


async def repaired_batches(story):
    """A batch write is written over after a later one of its application, whose mark is set once more."""
    committer = story.committer()
    await story.batch(committer, 1, PARTITIONED, Txn("app", 1))
    await story.batch(committer, 2, PARTITIONED, Txn("app", 2))
    story.foreign(1)
    await committer.tidy()


async def recoveries(story):
    """Another sink goes past sealed epochs and has run one of them itself."""
    await story.epoch(story.committer(), 0)
    asleep = story.committer()
    hold(asleep)
    for epoch in (1, 2, 3):
        await story.epoch(asleep, epoch, pace=ASYNCHRONOUS)
    story.foreign(2, txn(QUERY, 2))
    story.foreign(3, txn(QUERY, 4))
    await commit_passed(story.store, story.format(), QUERY, story.new_id)


async def given_up(story):
    """An epoch is left out of a version, and one whose version was written over is settled without files."""
    await story.epoch(story.committer(), 0)
    asleep = story.committer()
    hold(asleep)
    for epoch in (1, 2):
        await story.epoch(asleep, epoch, pace=ASYNCHRONOUS)
    parts = {"clock": story.clock, "new_id": story.new_id, "random": lambda: 0.5}
    committer = TableCommitter(story.store, story.format(), **parts)
    await committer.commit_pending(QUERY, replace(SETTINGS, given_up=frozenset({1})))
    story.foreign(1)
    await settle(story.store, story.format(), QUERY, [0], story.new_id)


STORIES = [streams, batches, fences, repairs, repaired_batches, recoveries, given_up]


def told(work) -> dict[str, str]:
    """The versions that the story leaves, without the number of our own version."""

    async def tell(clock):
        story = Story(clock)
        await work(story)
        objects = story.store.objects
        return {path: objects[path].decode() for path in sorted(objects) if path.startswith("_delta_log/")}

    found = run_virtually(tell)
    return {path: body.replace(ENGINE_INFO, "lakecommit/ours") for path, body in found.items()}


def recorded() -> dict[str, dict[str, str]]:
    """What each story was when it changed last."""
    return {name: versions for path in GOLDEN for name, versions in json.loads(path.read_text()).items()}


@pytest.mark.parametrize("work", STORIES, ids=[work.__name__ for work in STORIES])
def test_versions_are_what_they_were(work):
    assert told(work) == recorded()[work.__name__]


def test_the_stories_have_every_note():
    bodies = "".join(body for versions in recorded().values() for body in versions.values())
    notes = ["epochs", "watermarks", "names", "discarded", "replaced", "settled", "recovered", "kept", "past"]
    assert [note for note in notes if f'"{note}":' not in bodies] == []
