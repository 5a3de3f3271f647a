"""Cleaning up behind a stream: real manifests, seals and versions on a store in memory, a clock that is moved on."""

from __future__ import annotations

import asyncio

import pytest

from lakecommit.errors import ContradictoryState
from lakecommit.model import Attempt, AttemptId, Epoch, Seal, TaskId, Winner
from lakecommit.releasing.query import Cleaned
from lakecommit.state import codec, layout
from tests.formats import used
from tests.lake import QUERY, SCHEMA, SETTINGS


def run(work):
    return asyncio.run(work)


async def lose(table, committer, epoch, task, ids):
    """An attempt that uploads everything and is then never heard of."""
    planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
    return await table.report(planned, epoch, task, ids)


def test_losers_are_deleted_soon_after_the_seal_and_their_manifests_late(table):
    async def scenario():
        committer = table.committer()
        lost = await lose(table, committer, 0, 0, [7])
        assert len(await table.orphans()) == 1
        await committer.tidy()
        assert len(await table.orphans()) == 1, "an epoch without a seal has no losers yet"
        await table.epoch(committer, 0, [1], [2])
        await committer.tidy()
        assert await table.orphans() == []
        assert layout.manifest_path(lost.attempt, 0) in await table.paths("_lakecommit"), "it may still be uploading"
        assert await table.ids() == [1, 2]

    run(scenario())


def test_a_file_that_a_loser_uploads_after_the_early_sweep_is_swept_again(table):
    async def scenario():
        committer = table.committer()
        lost = await lose(table, committer, 0, 0, [7])
        (orphan,) = await table.orphans()
        body = await table.store.get(orphan)
        await table.epoch(committer, 0, [1])
        await committer.tidy()
        assert await table.orphans() == []
        await table.store.put(orphan, body.body)
        await table.epoch(committer, 1, [2])
        await committer.tidy()
        assert await table.orphans() == [orphan]
        table.pass_minutes(21)
        await committer.tidy()
        assert await table.orphans() == []
        assert layout.manifest_path(lost.attempt, 0) not in await table.paths("_lakecommit")

    run(scenario())


def test_an_epoch_is_released_when_covered_and_old_and_the_newest_stays(table):
    async def scenario():
        committer = table.committer()
        for epoch in range(4):
            await table.epoch(committer, epoch, [10 * epoch], [10 * epoch + 1])
        await committer.tidy()
        assert len(await table.state()) == 4 * 3
        table.pass_minutes(19)
        await committer.tidy()
        assert len(await table.state()) == 4 * 3
        table.store.counts.clear()
        await committer.tidy()
        assert not table.store.counts, "while it waits it does not look every time"
        table.pass_minutes(6)
        await committer.tidy()
        left = await table.state()
        assert [path for path in left if path.startswith("seals/")] == [f"seals/{3:020d}.avro"]
        assert len(left) == 3
        assert len(await table.ids()) == 8

    run(scenario())


def test_a_quiet_query_costs_no_requests(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [1])
        table.pass_minutes(21)
        await committer.tidy()
        table.store.counts.clear()
        await committer.tidy()
        assert not table.store.counts

    run(scenario())


def test_requests_of_a_steady_stream(table):
    """In the background: three listings, a look at the log and, once an epoch, its seal read and deletes in bulk."""

    async def scenario():
        committer = table.committer()
        for epoch in range(20):
            await table.epoch(committer, epoch, [epoch])
        await committer.tidy()
        for epoch in range(20, 40):
            await table.epoch(committer, epoch, [epoch])
        table.store.counts.clear()
        await committer.tidy()
        assert dict(table.store.counts) == {"get": 2, "list": 3}
        table.pass_minutes(21)
        await table.epoch(committer, 40, [40])
        table.store.counts.clear()
        await committer.tidy()
        # A seal read for each epoch that goes; all manifests in one delete, then all seals.
        assert dict(table.store.counts) == {"get": 2 + 40, "list": 3, "delete": 2}
        assert len(await table.state()) == 2

    run(scenario())


def test_a_new_process_releases_what_an_old_one_left(table):
    async def scenario():
        committer = table.committer()
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch])
        table.pass_minutes(21)
        restarted = table.committer()
        await restarted.plan(SCHEMA, SETTINGS, queries=[QUERY])
        await restarted.tidy()
        assert len(await table.state()) == 2

    run(scenario())


def test_a_manifest_that_has_just_come_keeps_its_epoch(table):
    """An attempt may sleep before its manifest for as long as it likes: from then on it has its deadline."""

    async def scenario():
        committer = table.committer()
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch])
        table.pass_minutes(21)
        await table.report(planned, 1, 5, [99])
        clean_up = await table.cleaner().survey()
        assert clean_up.released == [0]
        assert len(clean_up.lost.paths) == 1, "its file goes all the same"

    run(scenario())


def test_a_seal_that_a_zombie_put_again_protects_nobody(table):
    async def scenario():
        committer = table.committer()
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
        await table.epoch(committer, 0, [1])
        for epoch in range(1, 4):
            await table.epoch(committer, epoch, [epoch + 1])
        table.pass_minutes(21)
        await committer.tidy()
        assert len(await table.state()) == 2
        zombie = await table.report(planned, 1, 0, [77])
        seal = _seal(zombie, previous=b"the digest of epoch 0")
        await table.store.create(layout.seal_path(QUERY, Epoch(1)), codec.encode_seal(seal))
        restarted = table.committer()
        await restarted.plan(SCHEMA, SETTINGS, queries=[QUERY])
        await restarted.tidy()
        assert await table.orphans() == [], "everybody named there has lost"
        assert len(await table.state()) == 4, "but may still be uploading"
        table.pass_minutes(21)
        await restarted.tidy()
        assert len(await table.state()) == 2
        assert await table.ids() == [1, 2, 3, 4]

    run(scenario())


def _seal(report, previous) -> Seal:
    attempt = report.attempt
    winner = Winner(attempt.task, attempt.id, len(report.manifests), codec.digest_of(report.manifests))
    return Seal(attempt.query, attempt.epoch, (winner,), previous, "table", None, 0)


def test_in_an_epoch_without_a_seal_the_log_decides(table):
    async def scenario():
        committer = table.committer()
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
        winner = await table.report(planned, 0, 0, [1])
        await table.commit(committer, 0, [winner])
        for epoch in range(1, 3):
            await table.epoch(committer, epoch, [epoch + 1])
        table.pass_minutes(21)
        await committer.tidy()
        # The winner's manifest arrives a second time, much later, and a zombie's for the first.
        await table.store.put(layout.manifest_path(winner.attempt, 0), winner.manifests[0])
        await table.report(planned, 0, 0, [99])
        table.pass_minutes(21)
        restarted = table.committer()
        await restarted.plan(SCHEMA, SETTINGS, queries=[QUERY])
        await restarted.tidy()
        assert await table.orphans() == []
        assert await table.ids() == [1, 2, 3], "what the log names is left alone"
        assert len(await table.state()) == 2

    run(scenario())


@pytest.mark.parametrize("kind", ["data", "writers", "seals"])
def test_what_is_not_confirmed_keeps_what_explains_it(table, kind):
    async def scenario():
        committer = table.committer()
        await lose(table, committer, 0, 0, [7])
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch])
        table.pass_minutes(21)
        real = table.flaky._store
        table.flaky._store = _Stubborn(real, kind)
        cleaner = table.cleaner()
        cleaned = await cleaner.step(None)
        assert cleaned.unconfirmed > 0
        seals = [path for path in await table.state() if path.startswith("seals/")]
        assert len(seals) == 3, "a seal outlives every manifest of its epoch"
        if kind == "data":
            assert len([path for path in await table.state() if "0" * 20 in path]) == 2, "the loser's, and the seal"
        table.flaky._store = real
        assert await cleaner.step(None) != Cleaned()
        assert len(await table.state()) == 2
        assert await table.orphans() == []
        assert await table.ids() == [0, 1, 2]

    run(scenario())


class _Stubborn:
    """A store that does not delete the first key of one kind of a bulk delete, and says so."""

    def __init__(self, store, kind):
        self._store, self._kind = store, kind

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def delete(self, paths):
        mine = [path for path in paths if (f"/{self._kind}/" in path) or (self._kind == "data" and path[0] != "_")]
        kept = mine[:1] if self._kind != "seals" else mine
        await self._store.delete([path for path in paths if path not in kept])
        return kept


def test_a_damaged_manifest_keeps_its_epoch_and_nothing_outside_is_touched(table):
    async def scenario():
        committer = table.committer()
        lost = await lose(table, committer, 1, 0, [7])
        for epoch in range(4):
            await table.epoch(committer, epoch, [epoch])
        await table.store.put(layout.manifest_path(lost.attempt, 0), b"nonsense")
        table.pass_minutes(21)
        clean_up = await table.cleaner().survey()
        assert clean_up.released == [0]
        assert len(clean_up.lost.damaged) == 1

    run(scenario())


@pytest.mark.parametrize("victim", ["live", "../elsewhere", "_delta_log/00000000000000000000.json"])
def test_a_hostile_manifest_reaches_nothing(table, victim):
    """A loser's manifest that names a file of the table, of another table, or of the log."""

    async def scenario():
        committer = table.committer()
        lost = await lose(table, committer, 1, 0, [7])
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch])
        before = [*await table.paths(), *await table.paths(used().directory)]
        path = next(action["add"]["path"] for _, action in await table.actions() if "add" in action)
        record = codec.MANIFEST.decode(lost.manifests[0], "manifest")
        record["files"][0]["path"] = path if victim == "live" else victim
        await table.store.put(layout.manifest_path(lost.attempt, 0), codec.MANIFEST.encode(record))
        table.pass_minutes(60)
        clean_up = await table.cleaner().survey()
        assert "outside of its own attempt" in next(iter(clean_up.lost.damaged.values()))
        await table.cleaner().apply(clean_up)
        assert [*await table.paths(), *await table.paths(used().directory)] == before
        assert await table.ids() == [0, 1, 2]

    run(scenario())


def test_a_manifest_of_an_epoch_that_cannot_be_is_damage(table):
    async def scenario():
        committer = table.committer()
        lost = await lose(table, committer, 1, 0, [7])
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch])
        record = codec.MANIFEST.decode(lost.manifests[0], "manifest")
        body = codec.MANIFEST.encode({**record, "epoch": -1})
        await table.store.put(layout.manifest_path(lost.attempt, 0), body)
        table.pass_minutes(60)
        clean_up = await table.cleaner().survey()
        assert "is no attempt" in next(iter(clean_up.lost.damaged.values()))

    run(scenario())


def test_pending_epochs_lose_nothing_to_a_cleaner(table):
    async def scenario():
        committer = table.committer()
        await table.epoch(committer, 0, [0])
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[QUERY])
        report = await table.report(planned, 1, 0, [1])
        # Sealed, and the driver dies: nobody has committed it yet.
        stored = await table.store.get(layout.seal_path(QUERY, Epoch(0)))
        previous = codec.digest_of([stored.body])
        table_id = (await table.format().open()).table_id
        attempt = report.attempt
        winner = Winner(attempt.task, attempt.id, 1, codec.digest_of(report.manifests))
        seal = Seal(QUERY, Epoch(1), (winner,), previous, table_id, None, table.clock.wall_ms())
        await table.store.create(layout.seal_path(QUERY, Epoch(1)), codec.encode_seal(seal))
        table.pass_minutes(60)
        await table.cleaner().step(None)
        await table.epoch(table.committer(), 2, [2])
        assert await table.ids() == [0, 1, 2]

    run(scenario())


def test_a_cleaner_leaves_a_recreated_table_alone(table):
    async def scenario():
        committer = table.committer()
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch])
        known = await table.format().open()
        log = await table.paths(used().directory)
        body = (await table.store.get(log[0])).body.replace(known.table_id.encode(), b"other")
        await table.store.delete(log)
        await table.store.put(log[0], body)
        table.pass_minutes(60)
        with pytest.raises(ContradictoryState, match=r"made anew: .* is other"):
            await table.cleaner().step(known)
        cleaned = await table.cleaner().step(None)
        assert cleaned == Cleaned(), "without a mark every epoch counts as pending"

    run(scenario())


def test_names_outside_the_grammar_are_nobodys(table):
    async def scenario():
        committer = table.committer()
        foreign = f"{layout.writers_prefix(QUERY, Epoch(0))}/notes.txt"
        await table.store.put(foreign, b"mine")
        attempt = Attempt(QUERY, Epoch(0), TaskId(0), AttemptId("f" * 32))
        await table.store.put(f"day=1/{layout.data_file_name(attempt, 0)}", b"of an attempt that no manifest names")
        for epoch in range(3):
            await table.epoch(committer, epoch, [epoch])
        table.pass_minutes(60)
        await table.cleaner().step(None)
        assert foreign in await table.paths("_lakecommit")
        assert len(await table.orphans()) == 1, "only what a manifest names is ever deleted"

    run(scenario())
