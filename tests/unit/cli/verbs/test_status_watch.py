import asyncio
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lakecommit.cli.output import display
from lakecommit.cli.tables import table_at
from lakecommit.cli.verbs.status.watch import watch
from lakecommit.clock import SystemClock
from lakecommit.errors import ContradictoryState, InvalidInput, StoreError
from lakecommit.model import QueryId
from lakecommit.observing.follow import QUERIES_EVERY_MS, Watcher
from lakecommit.state import layout
from lakecommit.storage.location import open_store
from tests.lake import OTHER, QUERY
from tests.lake.clocks import FakeClock
from tests.lake.on_disk import LakeOnDisk
from tests.unit.cli.seals import SEALED_MS, RecordingStore, seal
from tests.unit.cli.tables import BATCH


class Watch:
    """Watches a table on a clock of its own, refresh by refresh."""

    def __init__(self, store):
        self.store = RecordingStore(store)
        self.clock = FakeClock()
        self.watcher = Watcher(self.store, asyncio.run(table_at(self.store, self.clock)), self.clock)

    def refresh(self, after_ms=1_000):
        self.clock.wall += after_ms
        self.clock.boot += after_ms
        self.store.forget()
        return asyncio.run(self.watcher.refresh())

    def query(self, query=QUERY, after_ms=1_000):
        return next(each for each in self.refresh(after_ms).queries if each.status.id == query)


@pytest.fixture
def lake(tmp_path):
    return LakeOnDisk(tmp_path / "lake")


def test_with_nothing_pending_a_refresh_costs_two_reads_and_a_listing_for_each_query(table):
    table.commit_epoch(0, query=OTHER)
    for epoch in range(3):
        table.commit_epoch(epoch)
    watched = Watch(table.store)
    watched.refresh()
    for _ in range(3):
        watched.refresh()
        assert len(watched.store.read) == 2
        assert watched.store.listed == [layout.seals_prefix(QUERY), layout.seals_prefix(OTHER)]


def test_only_seals_that_are_new_are_read(table):
    table.commit_epoch(0)
    for epoch in (1, 2):
        seal(table, epoch, [table.run_task(QUERY, epoch)])
    watched = Watch(table.store)
    assert watched.query().status.load.epochs == 2
    seal(table, 3, [table.run_task(QUERY, 3)])
    assert watched.query().status.load.epochs == 3
    assert [path for path in watched.store.read if "_delta_log" not in path] == [layout.seal_path(QUERY, 3)]
    assert not any(layout.parse_manifest_path(path) for path in watched.store.read)


def test_pending_lag_cadence_and_watermark(table):
    table.commit_epoch(0)
    watched = Watch(table.store)
    quiet = watched.query().status
    assert (quiet.load.epochs, quiet.lag_ms(watched.clock.wall)) == (0, None)
    seal(table, 1, [table.run_task(QUERY, 1)], backlog='{"0/a":9}', watermark_us=5)
    late = watched.query(after_ms=4_000).status
    assert (late.load.files, late.load.rows, late.load.size_bytes) == (1, 10, 100)
    assert (late.lag_ms(watched.clock.wall), late.partitions_behind, late.watermark_us) == (5_000, 1, 5)


def test_snapshots_and_rows_are_counted_from_the_beginning(lake):
    lake.commit(QUERY, 0, [1, 2, 3])
    watched = Watch(lake.store)
    began = watched.query()
    assert (began.snapshots, began.rows) == (0, 0)
    lake.commit(QUERY, 1, [4], [5])
    lake.seal(QUERY, 2, [6, 7, 8])
    between = watched.query()
    assert (between.snapshots, between.rows, between.status.load.rows) == (1, 2, 3)
    before = watched.refresh().version
    lake.commit(QUERY, 3, [9])
    after = watched.query()
    assert after.snapshots == 1 + watched.refresh().version - before
    assert (after.rows, after.status.load.rows, after.status.marks.mark) == (6, 0, 3)
    assert (watched.query().snapshots, watched.query().rows) == (after.snapshots, 6)


def test_a_first_epoch_is_counted_once(lake):
    lake.commit(OTHER, 0, [1])
    lake.seal(QUERY, 0, [1, 2])
    watched = Watch(lake.store)
    assert watched.query().rows == 0
    lake.commit(QUERY, 1, [3])
    assert [watched.query().rows for _ in range(3)] == [3, 3, 3]


def test_a_query_that_begins_later_is_found_and_counted(lake):
    lake.commit(OTHER, 0, [1])
    watched = Watch(lake.store)
    watched.refresh()
    lake.commit(QUERY, 0, [1, 2])
    lake.commit(QUERY, 1, [3])
    assert [each.status.id for each in watched.refresh().queries] == [OTHER]
    found = watched.query(after_ms=QUERIES_EVERY_MS)
    assert (found.snapshots, found.rows, found.status.marks.mark) == (2, 3, 1)


def test_batch_writes_are_not_watched(lake):
    lake.commit(QUERY, 0, [1])
    lake.commit_batch(QueryId(f"batch-{BATCH}"), [1])
    assert [each.status.id for each in Watch(lake.store).refresh().queries] == [QUERY]


def test_many_versions_at_once_are_followed_to_the_end(lake):
    lake.commit(QUERY, 0, [1])
    watched = Watch(lake.store)
    watched.refresh()
    for epoch in range(1, 12):
        lake.commit(QUERY, epoch, [epoch])
    found = watched.query()
    assert (found.snapshots, found.rows, found.status.marks.mark) == (11, 11, 11)


def test_a_damaged_seal_is_told_until_it_is_restored(table):
    table.commit_epoch(0)
    seal(table, 1, [table.run_task(QUERY, 1)])
    path = layout.seal_path(QUERY, 1)
    intact = asyncio.run(table.store.get(path)).body
    asyncio.run(table.store.put(path, b"not a seal"))
    watched = Watch(table.store)
    for _ in range(2):
        (epoch,) = watched.query().status.pending
        assert epoch.problem is not None
    asyncio.run(table.store.put(path, intact))
    (epoch,) = watched.query().status.pending
    assert (epoch.problem, epoch.rows) == (None, 10)


def test_where_the_log_was_cleaned_up_past_what_is_known_the_watch_begins_anew(lake):
    lake.commit(QUERY, 0, [1])
    watched = Watch(lake.store)
    watched.refresh()
    lake.commit(QUERY, 1, [2])
    marks = [{"appId": app, "version": 1, "lastUpdated": 1} for app in (str(QUERY), f"lakecommit:{QUERY}")]
    lake.checkpoint(*({"txn": mark} for mark in marks))
    for version in (0, 1):
        (lake.root / "_delta_log" / f"{version:020d}.json").unlink()
    found = watched.refresh()
    assert (found.version, found.watched_ms, found.queries[0].snapshots) == (2, 0, 0)
    lake.commit(QUERY, 2, [3])
    found = watched.refresh()
    assert (found.watched_ms, found.queries[0].snapshots, found.queries[0].rows) == (1_000, 1, 1)


def test_a_table_that_is_replaced_is_told_once(lake):
    lake.commit(QUERY, 0, [1])
    lake.commit(QUERY, 1, [2])
    watched = Watch(lake.store)
    watched.refresh()
    shutil.rmtree(lake.root)
    LakeOnDisk(lake.root).commit(OTHER, 0, [1])
    with pytest.raises(ContradictoryState):
        watched.refresh()
    assert [each.status.id for each in watched.refresh().queries] == [OTHER]


def test_where_there_is_no_table_there_is_nothing_to_watch(tmp_path, invoke):
    with pytest.raises(InvalidInput, match="there is no table at"):
        Watch(open_store(str(tmp_path / "nothing"), {})).refresh()
    result = invoke("status", tmp_path / "nothing", "--watch", exit_code=1)
    assert result.stderr == f"Error: there is no table at {tmp_path / 'nothing'}; check the location\n"


def shown(capsys, store, clock, refreshes, *, as_json):
    with display(as_json=as_json) as show:
        asyncio.run(watch(store, show, clock, 2, refreshes))
    return capsys.readouterr().out


def test_json_is_one_object_a_line(table, capsys):
    table.commit_epoch(0)
    seal(table, 1, [table.run_task(QUERY, 1)], backlog='{"0/a":9,"0/b":1}', watermark_us=1_000_000)
    first, second = map(json.loads, shown(capsys, table.store, FakeClock(), 2, as_json=True).splitlines())
    assert first | {"queries": []} == {
        "location": table.location,
        "timestampMs": SEALED_MS,
        "watchedMs": 0,
        "version": 1,
        "queries": [],
    }
    first["queries"][0].pop("lastSnapshotMs")
    assert first["queries"] == [
        {
            "query": QUERY,
            "name": None,
            "state": "catching up",
            "well": True,
            "verdict": "catching up: 1 epoch waits for the next large snapshot",
            "advice": None,
            "commands": [],
            "lastSealMs": SEALED_MS,
            "mark": 0,
            "ownMark": 0,
            "newestSeal": 1,
            "pendingEpochs": 1,
            "pendingFiles": 1,
            "pendingRows": 10,
            "pendingSizeBytes": 100,
            "lagMs": 0,
            "inBacklog": True,
            "backlogPartitions": 2,
            "watermark": "1970-01-01T00:00:01Z",
            "watermarkUs": 1_000_000,
            "snapshots": 0,
            "rows": 0,
            "snapshotsPerMinute": None,
            "rowsPerMinute": None,
            "passedEpochs": 0,
            "problems": [],
        }
    ]
    (query,) = second["queries"]
    assert (second["watchedMs"], query["lagMs"], query["snapshotsPerMinute"]) == (2_000, 2_000, 0)


def test_rates_are_per_minute(lake, capsys):
    lake.commit(QUERY, 0, [1])

    class BusyClock(FakeClock):
        """While it sleeps an epoch is committed."""

        async def sleep(self, seconds):
            await lake.commit_async(QUERY, 1, [1, 2, 3])
            await super().sleep(seconds)

    last = json.loads(shown(capsys, lake.store, BusyClock(), 2, as_json=True).splitlines()[-1])
    assert (last["queries"][0]["snapshotsPerMinute"], last["queries"][0]["rowsPerMinute"]) == (30, 90)


def test_without_a_terminal_there_is_a_block_for_each_refresh(table, capsys):
    table.commit_epoch(0)
    seal(table, 1, [table.run_task(QUERY, 1)], backlog='{"0/a":9,"0/b":1}')
    out = shown(capsys, table.store, FakeClock(), 3, as_json=False)
    *_, last = out.split(f"{table.location}\n")
    assert out.count(f"\n\n{table.location}\n") == 2
    assert out.count("in backlog, 2 partitions behind") == 3
    assert "4.0 s" in last
    assert "\x1b" not in out


def test_a_failure_of_the_store_is_shown_and_tried_again(table, capsys):
    table.commit_epoch(0)
    store = RecordingStore(table.store)

    class FailingClock(FakeClock):
        """While it sleeps for the first time the store begins to fail, for one read."""

        async def sleep(self, seconds):
            if self.wall == SEALED_MS:
                store.failures.append(StoreError("the store is away"))
            await super().sleep(seconds)

    first, failed, last = map(json.loads, shown(capsys, store, FailingClock(), 3, as_json=True).splitlines())
    assert failed == {"location": table.location, "timestampMs": SEALED_MS + 2_000, "error": "the store is away"}
    assert "error" not in first
    assert (last["version"], last["watchedMs"]) == (1, 4_000)
    blocks = shown(capsys, store, FailingClock(), 3, as_json=False)
    assert blocks.count("the store is away; it is tried again") == 1
    assert blocks.count("delta, version 1") == 3


def test_what_fails_at_once_is_an_error(table, capsys):
    table.commit_epoch(0)
    store = RecordingStore(table.store)
    store.failures.append(StoreError("the store is away"))
    with pytest.raises(StoreError, match="the store is away"):
        shown(capsys, store, FakeClock(), 1, as_json=False)


def test_epochs_that_another_sink_went_past_are_told(lake, capsys):
    lake.commit(QUERY, 0, [1])
    lake.seal(QUERY, 1, [2])
    lake.other_sink(QUERY, 1)
    watched = json.loads(shown(capsys, lake.store, SystemClock(), 1, as_json=True))
    assert (watched["queries"][0]["passedEpochs"], watched["queries"][0]["pendingEpochs"]) == (1, 0)
    assert "another sink went past 1 epoch;" in shown(capsys, lake.store, SystemClock(), 1, as_json=False)


def test_an_interval_alone_is_refused(table, invoke):
    table.commit_epoch(0)
    assert "--interval is for --watch" in invoke("status", table.location, "--interval", 5, exit_code=2).stderr


def start(table, *arguments, stdout):
    script = Path(sys.executable).with_name("lakecommit")
    command = [script, "status", table.location, "--watch", "--interval", "1", *arguments]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "200"}
    # A shell that runs the tests in the background has them ignore what Ctrl-C sends, and so would what they start.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, env=environment)
    finally:
        signal.signal(signal.SIGINT, before)


def interrupted(process):
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=240)
    return process.returncode, errors


def test_ctrl_c_ends_it_cleanly(table):
    table.commit_epoch(0)
    process = start(table, "--json", stdout=subprocess.PIPE)
    lines = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert [line["version"] for line in lines] == [1, 1]
    assert interrupted(process) == (0, b"")


def test_on_a_terminal_it_is_drawn_again_in_its_place(table):
    table.commit_epoch(0)
    here, there = pty.openpty()
    process = start(table, stdout=there)
    os.close(there)
    seen = b""
    while seen.count(b"watched for") < 2:
        seen += os.read(here, 65_536)
    assert interrupted(process) == (0, b"")
    os.close(here)
    # Between the two drawings the cursor goes up again.
    assert b"\x1b[1A" in seen.split(b"watched for")[1]
