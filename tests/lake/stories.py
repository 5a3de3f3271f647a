"""What drivers leave when they die, and what others do to a table."""

from __future__ import annotations

import json
from dataclasses import replace

from lakecommit.formats.change import Scope
from lakecommit.model import QueryId, Report
from lakecommit.progress.settings import Replacement
from lakecommit.state import codec
from tests.formats import used

from .lake import QUERY, SCHEMA, SETTINGS

OVERWRITE = QueryId("bbbbbbbb-0000-0000-0000-000000000000")
WHOLE = Scope()


def version_path(version: int) -> str:
    return used().path(version)


async def batch(table, committer, ids, txn=None, query="aaaaaaaa-0000-0000-0000-000000000000") -> int | None:
    """A batch write of one task."""
    planned = await committer.plan(SCHEMA, SETTINGS, txn=txn)
    report = await table.report(planned, 0, 0, ids, query=QueryId(query))
    if planned.skip:
        report = Report(report.attempt, skipped=True)
    return await committer.commit_batch(QueryId(query), [report], schema=SCHEMA, settings=SETTINGS, txn=txn)


async def overwrite(table, committer, ids, *, meanwhile=None, txn=None, query=OVERWRITE, scope=WHOLE) -> int | None:
    """A batch write of one task that replaces the table; `meanwhile` happens after it was planned."""
    settings = replace(table.settings, replaces=Replacement(scope, None))
    planned = await committer.plan(table.schema, settings, afresh=True, txn=txn)
    report = await table.report(planned, 0, 0, ids, query=query)
    if planned.skip:
        report = Report(report.attempt, skipped=True)
    if meanwhile is not None:
        await meanwhile()
    settings = replace(settings, replaces=Replacement(scope, planned.version))
    return await committer.commit_batch(query, [report], schema=table.schema, settings=settings, txn=txn)


async def seal_less(table, epoch, ids) -> Report:
    planned = await table.idle_committer().plan(SCHEMA, SETTINGS, queries=[QUERY])
    return await table.report(planned, epoch, 0, ids)


async def seal_only(table, epoch, ids) -> Report:
    """A driver that seals an epoch and dies before its version."""
    report = await seal_less(table, epoch, ids)
    await table.seal_only(table.committer(), epoch, [report])
    return report


async def foreign_version(table, version: int, *actions: dict) -> None:
    body = used().body([{"commitInfo": {"operation": "X"}}, *actions])
    await table.store.put(version_path(version), body)


async def write_over(table, version: int, *actions: dict) -> None:
    """A PUT of another writer that was sent before this version was ours, and takes effect now."""
    info = {"commitInfo": {"operation": "WRITE", "engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0"}}
    await table.store.put(version_path(version), used().body([info, *actions]))


async def compact(table, version: int, added_in: int) -> None:
    """Somebody rewrites the one file that a version of ours has added."""
    (path,) = [each["add"]["path"] for number, each in await table.actions() if number == added_in and "add" in each]
    body = (await table.store.get(path)).body
    name = f"compacted-{version}.parquet"
    await table.store.put(name, body)
    added = {"path": name, "partitionValues": {}, "size": len(body), "modificationTime": 1, "dataChange": False}
    await foreign_version(
        table,
        version,
        {"commitInfo": {"timestamp": table.clock.wall_ms(), "operation": "OPTIMIZE"}},
        {"remove": {"path": path, "dataChange": False, "deletionTimestamp": 1}},
        {"add": added},
    )


def path_of(report):
    return codec.decode_manifest(report.manifests[0], "m").files[0].path


async def new_table_id(table, version: int, table_id: str) -> None:
    """CREATE OR REPLACE: another id, the marks stay."""
    first = used().actions((await table.store.get(version_path(0))).body)
    metadata = next(action for action in first if "metaData" in action)
    metadata["metaData"]["id"] = table_id
    await foreign_version(table, version, metadata)


async def checkpoint(table) -> None:
    """A checkpoint of the newest version, as a maintenance job writes it."""
    state = await table.format().open()
    assert state is not None
    first = (await table.store.get(version_path(0))).body.splitlines()
    kept = [json.loads(line) for line in first if b'"metaData"' in line or b'"protocol"' in line]
    kept += [{"txn": {"appId": app, "version": mark, "lastUpdated": 1}} for app, mark in state.txns.items()]
    body = b"\n".join(json.dumps(each).encode() for each in kept)
    await table.store.put(f"_delta_log/{state.version:020d}.checkpoint.{state.table_id}.json", body)
    await table.store.put("_delta_log/_last_checkpoint", json.dumps({"version": state.version}).encode())
