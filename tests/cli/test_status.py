import asyncio

from lakecommit.cli.status import read_status
from lakecommit.state import layout
from tests.cli.tables import BATCH, OTHER, QUERY


def user_of(status, user):
    return next(each for each in status["users"] if each["user"] == user)


def test_a_committed_stream_has_nothing_staged(table, invoke_json):
    table.commit_epoch(0)
    table.commit_epoch(1)
    status = invoke_json("status", table.location)
    assert (status["location"], status["format"], status["version"]) == (table.location, "delta", 2)
    assert user_of(status, QUERY) == {
        "user": QUERY,
        "mark": 1,
        "ownMark": 1,
        "newestSeal": 1,
        "pending": [],
        "passed": [],
        "unsealed": [],
        "staged": {"files": 0, "rows": 0, "sizeBytes": 0},
    }


def test_sealed_epochs_after_the_marks_are_pending(table, invoke_json):
    table.commit_epoch(0)
    for epoch in (1, 2):
        loser = table.run_task(QUERY, epoch)
        table.seal(QUERY, epoch, [table.run_task(QUERY, epoch), table.run_task(QUERY, epoch, 1)])
        assert loser
    user = user_of(invoke_json("status", table.location), QUERY)
    assert (user["mark"], user["newestSeal"]) == (0, 2)
    assert [each["epoch"] for each in user["pending"]] == [1, 2]
    assert user["pending"][0] == {
        "epoch": 1,
        "sealedMs": 1_700_000_000_000,
        "attempts": 3,
        "files": 2,
        "rows": 20,
        "sizeBytes": 200,
        "lostFiles": 1,
        "problem": None,
    }
    assert user["staged"] == {"files": 6, "rows": 40, "sizeBytes": 400}


def test_an_epoch_without_a_seal_is_staged_but_not_pending(table, invoke_json):
    table.commit_epoch(0)
    table.run_task(QUERY, 1)
    user = user_of(invoke_json("status", table.location), QUERY)
    assert (user["pending"], user["newestSeal"]) == ([], 0)
    assert [(each["epoch"], each["files"], each["sealedMs"]) for each in user["unsealed"]] == [(1, 1, None)]


def test_an_epoch_without_rows_is_not_pending(table, invoke_json):
    table.commit_epoch(0)
    table.commit_epoch(1, rows=False)
    user = user_of(invoke_json("status", table.location), QUERY)
    assert (user["mark"], user["newestSeal"], user["pending"]) == (0, 1, [])


def test_each_user_is_shown_with_its_own_marks(table, invoke_json):
    table.commit_epoch(0, user=OTHER)
    table.commit_epoch(0)
    table.commit_epoch(1)
    status = invoke_json("status", table.location)
    assert [(user["user"], user["mark"]) for user in status["users"]] == [(QUERY, 1), (OTHER, 0)]


def test_epochs_that_another_sink_went_past_are_called_out(table, invoke, invoke_json):
    table.create()
    table.seal(QUERY, 0, [table.run_task(QUERY, 0)])
    # The same query id, committed further by a sink that moves the mark alone.
    log = {"txn": {"appId": str(QUERY), "version": 3, "lastUpdated": 1}}
    asyncio.run(table.store.put("_delta_log/00000000000000000001.json", str(log).replace("'", '"').encode()))
    user = user_of(invoke_json("status", table.location), QUERY)
    assert ([each["epoch"] for each in user["passed"]], user["pending"]) == ([0], [])
    assert "another sink went past pending epochs" in invoke("status", table.location).stdout


def test_a_committed_batch_write_is_not_staged(table, invoke, invoke_json):
    table.commit_batch()
    table.run_task(OTHER, 0)
    status = invoke_json("status", table.location)
    assert status["committedBatches"] == [BATCH]
    assert [(user["user"], len(user["unsealed"])) for user in status["users"]] == [(OTHER, 1)]
    assert f"{OTHER}: a stream in its first epoch, or a batch write" in invoke("status", table.location).stdout


def test_damaged_state_is_reported_by_epoch(table, invoke, invoke_json):
    table.commit_epoch(0)
    kept, lost = table.run_task(QUERY, 1, 0), table.run_task(QUERY, 1, 1)
    table.seal(QUERY, 1, [kept, lost])
    asyncio.run(table.store.delete([layout.manifest_path(lost.attempt, 0)]))
    asyncio.run(table.store.put(layout.seal_path(QUERY, 2), b"not a seal"))
    problems = {
        each["epoch"]: each["problem"] for each in user_of(invoke_json("status", table.location), QUERY)["pending"]
    }
    assert "1 manifests that the seal of epoch 1 names are missing" in problems[1]
    assert problems[2] is not None
    assert "are missing" in invoke("status", table.location).stdout


def test_the_console_form_has_the_same_figures(table, invoke):
    table.commit_epoch(0)
    table.seal(QUERY, 1, [table.run_task(QUERY, 1)])
    shown = invoke("status", table.location).stdout
    assert "delta, version 1" in shown
    assert QUERY in shown
    assert "pending" in shown
    assert "100 B" in shown


def test_no_table(tmp_path, invoke):
    result = invoke("status", tmp_path / "nothing", exit_code=1)
    assert result.stderr == f"Error: there is no table at {tmp_path / 'nothing'}; check the location\n"


def test_the_table_is_never_listed(table):
    class Watching:
        def __init__(self, store):
            self._store = store
            self.listed = []

        def __getattr__(self, name):
            return getattr(self._store, name)

        def list(self, prefix, *, start_after=None):
            self.listed.append(prefix)
            return self._store.list(prefix, start_after=start_after)

    table.commit_epoch(0)
    table.seal(QUERY, 1, [table.run_task(QUERY, 1)])
    store = Watching(table.store)
    asyncio.run(read_status(store))
    assert store.listed
    assert all(prefix.startswith(("_lakecommit/users", "_delta_log")) for prefix in store.listed)
