"""What goes wrong with one query, or went wrong long ago, is not another's affair: in virtual time."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import replace
from types import SimpleNamespace

import pytest

from lakecommit.committing.table import PATIENCE_MS
from lakecommit.errors import AccessDenied, CorruptState, LakecommitError, StoreError
from lakecommit.model import DataFile, Epoch
from lakecommit.options.parsing import parse_options
from lakecommit.progress.backlog import EpochOffsets
from lakecommit.progress.cadence import Pace
from lakecommit.service.dispatch import Committers
from lakecommit.service.server import _pending_lines
from lakecommit.state import codec, layout
from tests.formats import used
from tests.lake import OTHER, QUERY, SCHEMA, SETTINGS, Lake, Named
from tests.lake.virtual_time import run_virtually


def virtually(scenario):
    return run_virtually(lambda clock: scenario(Lake.in_virtual_time(clock)))


def break_reads(lake, broken, error):
    """GETs of paths for which `broken` holds raise `error` from now on; returns what ends that."""
    get = lake.store.get

    async def failing(path, **more):
        if broken(path):
            raise error
        return await get(path, **more)

    lake.store.get = failing

    def mend():
        lake.store.get = get

    return mend


def committers_of(lake):
    return Committers(clock=lake.clock, open_at=lambda *_, **__: lake.store, random_fraction=lambda: 0.5)


def served(committers, timeout="30s"):
    with committers.using(parse_options({"path": "memory://table", "store.timeout": timeout}, streaming=True)) as found:
        return found


def files_in_memory():
    gc.collect()
    return sum(isinstance(each, DataFile) for each in gc.get_objects())


@pytest.mark.parametrize("error", [AccessDenied("403"), StoreError("the body ends early")])
def test_a_query_whose_state_cannot_be_read_fails_alone(error):
    async def scenario(lake):
        committer = lake.committer(patience_ms=PATIENCE_MS)
        for query in (QUERY, OTHER):
            committer.begin_run(query)
            await lake.epoch(committer, 0, query=query, pace=Pace())
        lake.store.version_ms = 2000
        await lake.epoch(committer, 1, query=OTHER)
        await lake.epoch(committer, 1)
        await lake.epoch(committer, 2, query=OTHER)
        break_reads(lake, lambda path: "/writers/" in path and OTHER in path, error)
        committer.begin_run(OTHER)
        for epoch in range(2, 700):
            await lake.epoch(committer, epoch)
            await lake.clock.sleep(1)
        await lake.clock.sleep(10)
        assert lake.runs(QUERY)[-1][1] == 699
        with pytest.raises(type(error)):
            await lake.epoch(committer, 3, query=OTHER)

    virtually(scenario)


def test_a_query_whose_seal_was_tampered_with_fails_alone():
    async def scenario(lake):
        first = lake.committer()
        for query in (QUERY, OTHER):
            await lake.epoch(first, 0, query=query, pace=Pace())
        lake.store.version_ms = 10**9
        await lake.epoch(first, 1, query=OTHER)
        lake.store.version_ms = 0
        path = layout.seal_path(OTHER, Epoch(1))
        record = codec.SEAL.decode((await lake.store.get(path)).body, path)
        record["winners"][0]["attempt"] = "../../../elsewhere"
        await lake.store.put(path, codec.SEAL.encode(record))
        committer = lake.committer()
        for epoch in (1, 2):
            await committer.plan(SCHEMA, SETTINGS, queries=[OTHER, QUERY])
            await lake.epoch(committer, epoch, pace=Pace())
        assert lake.runs(QUERY)[-1][1] == 2
        with pytest.raises(CorruptState, match="is no attempt"):
            await lake.epoch(committer, 2, query=OTHER)

    virtually(scenario)


def test_a_query_that_is_read_again_after_a_fault_loses_nothing():
    async def scenario(lake):
        committer = lake.committer(patience_ms=PATIENCE_MS)
        await lake.epoch(committer, 0, pace=Pace())
        lake.store.version_ms = 2000
        await lake.epoch(committer, 1)
        mend = break_reads(lake, lambda path: "/writers/" in path, StoreError("503"))
        await lake.epoch(committer, 2)
        committer.begin_run(QUERY)
        await lake.clock.sleep(60)
        mend()
        await committer.drain()
        assert sorted(lake.epochs_of_files()) == [0, 1, 2]

    virtually(scenario)


def test_a_query_that_ends_while_it_is_read_is_committed():
    async def scenario(lake):
        dead = lake.committer()
        await lake.epoch(dead, 0, pace=Pace())
        lake.store.version_ms = 10**9
        for epoch in range(1, 9):
            await lake.epoch(dead, epoch, Named(2000))
        lake.store.version_ms = 0
        get = lake.store.get

        async def slow(path, **more):
            await lake.clock.sleep(1)
            return await get(path, **more)

        lake.store.get = slow
        committer = lake.committer(patience_ms=PATIENCE_MS)
        committer.begin_run(QUERY)
        planning = asyncio.ensure_future(committer.plan(SCHEMA, SETTINGS, queries=[QUERY]))
        await lake.clock.sleep(20)
        committer.end_run(QUERY)
        await planning
        await committer.drain()
        assert sorted(set(lake.epochs_of_files())) == list(range(9))

    virtually(scenario)


def test_a_query_that_ends_while_its_listeners_are_found_is_not_forgotten_before():
    async def scenario(lake):
        await lake.epoch(lake.committer(), 0, pace=Pace())
        listener = SimpleNamespace(name="listener", on_snapshot=lambda snapshot: None)
        committer = lake.committer(listener, patience_ms=PATIENCE_MS)
        listing, found = lake.store.list, []

        async def slow(prefix, **more):
            if "/listeners/" in prefix:
                found.append(prefix)
                await lake.clock.sleep(10)
            async for page in listing(prefix, **more):
                yield page

        lake.store.list = slow
        committer.begin_run(QUERY)
        planning = asyncio.ensure_future(committer.plan(SCHEMA, SETTINGS, queries=[QUERY]))
        await lake.clock.sleep(1)
        assert found
        committer.end_run(QUERY)
        assert (await planning).done == {QUERY: 0}
        await committer.drain()

    virtually(scenario)


def test_patience_begins_anew_where_somebody_else_mended_it():
    async def scenario(lake):
        committer = lake.committer(patience_ms=PATIENCE_MS)
        await lake.epoch(committer, 0, pace=Pace())
        lake.store.failures = [StoreError("503")]
        await lake.epoch(committer, 1)
        await lake.clock.sleep(0.1)
        await lake.committer().commit_pending(QUERY, SETTINGS)
        await committer.plan(SCHEMA, SETTINGS, afresh=True)
        await lake.clock.sleep(3600)
        lake.store.failures = [StoreError("503")]
        assert (await lake.epoch(committer, 2, pace=Pace())).version == 3

    virtually(scenario)


def test_another_query_that_begins_is_no_reason_to_fail():
    async def epoch(lake, committer, number):
        planned = await committer.plan(SCHEMA, SETTINGS, queries=[OTHER, QUERY])
        report = await lake.report(planned, number, 0, Named())
        offsets = EpochOffsets(str(number))
        return await committer.commit_epoch(
            QUERY,
            Epoch(number),
            [report],
            schema=SCHEMA,
            settings=SETTINGS,
            offsets=offsets,
            pace=Pace(commit_wait_ms=0),
        )

    async def scenario(lake):
        committer = lake.committer(patience_ms=PATIENCE_MS)
        for number in range(2):
            await epoch(lake, committer, number)
        await committer.drain()
        mend = break_reads(lake, lambda path: path.startswith(used().directory), StoreError("503"))
        committer.begin_run(OTHER)
        await epoch(lake, committer, 2)
        mend()
        await committer.drain()
        assert lake.epochs_of_files() == [0, 1, 2]

    virtually(scenario)


def test_a_table_that_was_replaced_is_accepted_by_the_first_restart_that_says_so():
    async def scenario(lake):
        committer = lake.committer(patience_ms=PATIENCE_MS)
        committer.begin_run(QUERY)
        for epoch in (0, 1):
            await lake.epoch(committer, epoch, pace=Pace())
        created = used().actions(lake.store.objects[used().path(0)])
        metadata = next(action["metaData"] for action in created if "metaData" in action)
        replaced = {"metaData": {**metadata, "id": "new-id"}}
        info = {"commitInfo": {"operation": "CREATE OR REPLACE TABLE"}}
        lake.store.objects[used().path(3)] = used().body([info, replaced])
        with pytest.raises(LakecommitError, match="acceptTableId=new-id"):
            await lake.epoch(committer, 2, pace=Pace())
        # What was sealed for the old table is looked for before it is added.
        manifests = [body for path, body in list(lake.store.objects.items()) if "/writers/" in path]
        for manifest in (codec.decode_manifest(body, "m") for body in manifests):
            lake.store.objects.update({file.path: b"" for file in manifest.files})
        committer.begin_run(QUERY)
        await lake.clock.sleep(1)
        accepting = replace(SETTINGS, accepted_table_id="new-id")
        assert (await lake.epoch(committer, 2, pace=Pace(), settings=accepting)).version == 4

    virtually(scenario)


def test_what_may_be_pending_is_said_also_while_it_cannot_be_read():
    async def scenario(lake):
        committers = committers_of(lake)
        committer = served(committers)
        await lake.epoch(committer, 0, pace=Pace())
        lake.store.version_ms = 3000
        for epoch in (1, 2):
            await lake.epoch(committer, epoch)
        assert _pending_lines(committers) == [f"2 epochs (2 files) of query {QUERY} are pending in memory://table"]
        break_reads(lake, lambda path: True, StoreError("503"))
        lake.store.failures = [StoreError("503")] * 1000
        committer.begin_run(QUERY)
        await lake.clock.sleep(10)
        maybe = [f"epochs of query {QUERY} may be pending in memory://table"]
        assert _pending_lines(committers) == maybe
        await lake.clock.sleep(3600)
        with pytest.raises(StoreError):
            await committer.drain()
        assert _pending_lines(committers) == maybe, "also when it is tried no longer"

    virtually(scenario)


def test_a_failure_that_is_remembered_holds_none_of_the_files():
    async def scenario(lake):
        committer = lake.committer()
        await lake.epoch(committer, 0, pace=Pace())
        before = files_in_memory()
        lake.store.failures = [AccessDenied("403")]
        await lake.epoch(committer, 1, Named(500))
        await lake.clock.sleep(5)
        for _ in range(3):
            with pytest.raises(AccessDenied) as caught:
                await committer.drain()
            frames = len(caught.traceback)
            del caught
        assert frames < 12
        committer.end_run(QUERY)
        await lake.clock.sleep(5)
        assert files_in_memory() < before + 500

    virtually(scenario)


def test_two_queries_with_other_store_options_are_both_named():
    async def scenario(lake):
        committers = committers_of(lake)
        queries = {"30s": QUERY, "60s": OTHER}
        for timeout, query in queries.items():
            await lake.epoch(served(committers, timeout), 0, query=query, pace=Pace())
        lake.store.version_ms = 3000
        for timeout, query in queries.items():
            await lake.epoch(served(committers, timeout), 1, query=query)
        assert committers.pending["memory://table"].keys() == {QUERY, OTHER}
        await committers.drain()

    virtually(scenario)


async def fails_and_ends(lake, committer, error):
    """Epoch 0 is in the table, epoch 1 is sealed and its commit fails for good, and the run ends."""
    await lake.epoch(committer, 0, pace=Pace())
    lake.store.failures = [error]
    with pytest.raises(type(error)):
        await lake.epoch(committer, 1, pace=Pace())
    committer.end_run(QUERY)
    await lake.clock.sleep(5)


def test_a_drain_commits_what_a_run_left_that_failed_and_has_ended():
    """Its failure was that run's: Spark's query has raised it, and what it met may be over."""

    async def scenario(lake):
        committer = lake.committer()
        await fails_and_ends(lake, committer, AccessDenied("403"))
        await committer.drain()
        assert lake.runs() == [(0, 0), (1, 1)]
        assert not committer._queries.runs, "it is forgotten"

    virtually(scenario)


def test_a_drain_does_not_mind_a_failed_run_whose_epochs_somebody_else_has_committed():
    async def scenario(lake):
        committer = lake.committer()
        await fails_and_ends(lake, committer, AccessDenied("403"))
        await lake.committer().commit_pending(QUERY, SETTINGS)
        await committer.drain()
        assert lake.runs() == [(0, 0), (1, 1)]
        assert not committer.unsure

    virtually(scenario)


def test_a_drain_says_each_time_that_a_failed_run_still_has_epochs_pending():
    async def scenario(lake):
        committer = lake.committer()
        await fails_and_ends(lake, committer, AccessDenied("403"))
        lake.store.failures = [AccessDenied("403 again")] * 2
        for _ in range(2):
            with pytest.raises(AccessDenied, match="403 again"):
                await committer.drain()
        await committer.drain()
        assert lake.runs() == [(0, 0), (1, 1)]

    virtually(scenario)


def test_of_runs_that_have_ended_only_so_many_failures_are_remembered(monkeypatch):
    monkeypatch.setattr("lakecommit.progress.queries.FAILED_RUNS_KEPT", 3)

    async def scenario(lake):
        committer = lake.committer()
        await lake.epoch(committer, 0, pace=Pace())
        for number in range(10):
            query = f"{number:08d}-2222-3333-4444-555555555555"
            lake.store.failures = [AccessDenied("403")]
            with pytest.raises(AccessDenied):
                await lake.epoch(committer, 0, query=query, pace=Pace())
            committer.end_run(query)
            await lake.clock.sleep(1)
        queries = committer._queries
        assert len([run for run in queries.runs.values() if run.failure is not None]) == 3
        assert len(queries.runs) == 4, "those and the query that goes on"
        assert max(map(len, (queries.progress, queries.looked, committer._sealing))) <= 4

    virtually(scenario)
