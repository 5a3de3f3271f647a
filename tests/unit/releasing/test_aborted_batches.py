"""Batch writes that Spark has aborted, with tasks that do not know it yet."""

import asyncio

from tests.lake.on_disk import BATCH, LakeOnDisk


def test_a_task_that_writes_on_after_the_abort_leaves_nothing(tmp_path):
    """Spark ends the rows of a task that fails as if they were all there, so that it writes those that it has."""
    lake = LakeOnDisk(tmp_path / "table")

    async def scenario():
        committer = lake.committer()
        (reported,) = await lake.reports(BATCH, 0, [1])
        await committer.abort_batch(BATCH, [reported, None])
        assert (lake.files(), lake.state(BATCH)) == (set(), ([], 0))
        await lake.reports(BATCH, 0, [2])
        await committer.tidy()
        assert lake.files() == set()
        lake.age(hours=2)
        await committer.tidy()
        assert lake.state(BATCH) == ([], 0)

    asyncio.run(scenario())
