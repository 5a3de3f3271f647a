import asyncio
import json

from tests.lake import QUERY


def test_versions_newest_first(table, invoke_json):
    table.commit_epoch(0)
    table.commit_batch()
    newest, stream, created = invoke_json("history", table.location)
    assert [entry["version"] for entry in (newest, stream, created)] == [2, 1, 0]
    assert (stream["operation"], stream["rows"], stream["files"], stream["sizeBytes"]) == (
        "STREAMING UPDATE",
        20,
        2,
        200,
    )
    assert (stream["epochs"], stream["engine"].partition("/")[0]) == ({QUERY: [0, 0]}, "lakecommit")
    assert (newest["operation"], newest["rows"], newest["files"], newest["epochs"]) == ("WRITE", 10, 1, {})
    assert (created["operation"], created["rows"]) == ("CREATE TABLE", None)
    assert all(entry["timestampMs"] > 0 for entry in (newest, stream, created))


def test_limit(table, invoke, invoke_json):
    for epoch in range(3):
        table.commit_epoch(epoch, tasks=1)
    assert [entry["version"] for entry in invoke_json("history", table.location, "--limit", 2)] == [3, 2]
    assert "--limit" in invoke("history", table.location, "--limit", 0, exit_code=2).stderr


def test_versions_of_other_engines(table, invoke, invoke_json):
    """Delta's own streaming sink names the epoch in the parameters; a version may also say nothing at all."""
    table.create()
    info = {
        "timestamp": 1_700_000_000_000,
        "operation": "STREAMING UPDATE",
        "operationParameters": {"queryId": "q", "epochId": "7"},
        "operationMetrics": {"numOutputRows": "5", "numAddedFiles": "1"},
        "engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0",
    }
    for version, line in enumerate([json.dumps({"commitInfo": info}), '{"txn":{"appId":"a","version":1}}'], start=1):
        asyncio.run(table.store.put(f"_delta_log/{version:020d}.json", line.encode()))
    silent, streamed, _ = invoke_json("history", table.location)
    assert (streamed["epochs"], streamed["rows"], streamed["files"]) == ({"q": [7, 7]}, 5, 1)
    assert (silent["operation"], silent["rows"], silent["engine"]) == (None, None, None)
    shown = invoke("history", table.location).stdout
    assert "2023-11-14T22:13:20.000Z" in shown
    assert "Delta-Lake/4.4.0" in shown


def test_no_table(tmp_path, invoke):
    assert "there is no table" in invoke("history", tmp_path, exit_code=1).stderr
