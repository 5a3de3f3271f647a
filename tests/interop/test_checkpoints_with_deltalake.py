"""Random tables by deltalake: read from lakecommit's checkpoint alone, each is what it was before."""

from __future__ import annotations

import json
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from lakecommit.formats.delta.log.file_actions import FileKind
from lakecommit.formats.delta.log.live import LiveFiles, log_at
from lakecommit.formats.delta.upkeep import checkpointing
from lakecommit.formats.upkeep import Checkpointed
from lakecommit.storage.location import open_store
from tests.interop.appending import delta_at
from tests.unit.formats.delta.fakes import run

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("text", pa.string())])
PARTS = st.sampled_from([None, "", "a", "b c", "ü/%25=", "x'y"])
APPLICATIONS = ("one", "two")

APPEND = st.tuples(
    st.just("append"),
    st.lists(st.tuples(st.integers(-5, 5), PARTS, st.none() | st.text(max_size=3)), min_size=1, max_size=4),
)
STEP = st.one_of(
    APPEND,
    st.tuples(st.just("overwrite"), st.lists(st.tuples(st.integers(-5, 5), PARTS, st.none()), max_size=2)),
    st.tuples(st.just("delete"), st.integers(-5, 5)),
    st.tuples(st.just("optimize"), st.none()),
    st.tuples(st.just("property"), st.integers(0, 9)),
    st.tuples(st.just("theirs"), st.none()),
    st.tuples(st.just("ours"), st.booleans()),
    st.tuples(st.just("tag"), st.text("ab", min_size=1, max_size=2)),
)


def arrow(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    return pa.table([pa.array(list(column), field.type) for column, field in zip(columns, SCHEMA, strict=True)], SCHEMA)


class Story:
    def __init__(self, path: Path, partitioned: bool) -> None:
        self.path, self.versions = path, 0
        deltalake.write_deltalake(
            str(path), arrow([]), partition_by=["part"] if partitioned else None, description="a table", name="random"
        )

    def tell(self, what: str, detail: Any) -> None:
        table = DeltaTable(self.path)
        self.versions += 1
        mark = Transaction(APPLICATIONS[self.versions % 2], self.versions, last_updated=self.versions)
        marked = CommitProperties(app_transactions=[mark])
        if what in ("append", "overwrite"):
            deltalake.write_deltalake(str(self.path), arrow(detail), mode=what, commit_properties=marked)
        elif what == "delete":
            table.delete(f"id = {detail}", commit_properties=marked)
        elif what == "optimize":
            table.optimize.compact()
        elif what == "property":
            table.alter.set_table_properties({"number": str(detail)}, raise_if_not_exists=False)
        elif what == "theirs":
            table.create_checkpoint()
        elif what == "tag":
            self._tag(table, detail)
        else:
            checkpointed(self.path, in_steps=detail)

    def _tag(self, table: DeltaTable, value: str) -> None:
        """Somebody adds a live file again, with a tag, a deletion vector's place and what row tracking notes."""
        state = files_of(self.path)
        log = self.path / "_delta_log"
        if state:
            file = {**state[0], "tags": {"tag": value}, "baseRowId": 7, "defaultRowCommitVersion": 1}
            action = {"add": {**file, "dataChange": False, "clusteringProvider": "liquid"}}
            (log / f"{table.version() + 1:020d}.json").write_text(json.dumps(action, ensure_ascii=False) + "\n")


def checkpointed(path: Path, *, in_steps: bool) -> None:
    before = checkpointing.STEP_BYTES
    checkpointing.STEP_BYTES = 1 if in_steps else before
    try:
        assert isinstance(run(delta_at(path).checkpoint()), Checkpointed)
    finally:
        checkpointing.STEP_BYTES = before


def files_of(path: Path) -> list[dict[str, Any]]:
    """All live files with all that is known of them, by our reader."""

    async def read() -> list[dict[str, Any]]:
        store = open_store(str(path), {})
        version = DeltaTable(path).version()
        found: list[dict[str, Any]] = []
        async for batch in LiveFiles(store, await log_at(store, version)).read():
            assert batch.kind is FileKind.ADD
            found += batch.to_dicts()
        return sorted(({**each, "dataChange": True} for each in found), key=lambda each: each["path"])

    return run(read())


def seen(path: Path) -> dict[str, Any]:
    """What deltalake sees of a table."""
    table = DeltaTable(path)
    rows = table.to_pyarrow_table().select(SCHEMA.names).to_pylist()
    actions = pa.table(table.get_add_actions(flatten=False)).to_pylist()
    metadata = table.metadata()
    return {
        "version": table.version(),
        "rows": sorted(map(repr, rows)),
        "files": sorted(map(repr, actions)),
        "metadata": (metadata.id, metadata.name, metadata.description, metadata.configuration, metadata.created_time),
        "schema": table.schema().to_json(),
        "protocol": str(table.protocol()),
        "marks": [table.transaction_version(each) for each in APPLICATIONS],
    }


@settings(max_examples=25, deadline=None)
@given(st.booleans(), st.lists(STEP, min_size=1, max_size=8), st.booleans())
def test_a_table_is_the_same_from_its_checkpoint_alone(
    partitioned: bool, steps: list[tuple[str, Any]], in_steps: bool
) -> None:
    path = Path(tempfile.mkdtemp()) / uuid.uuid4().hex
    try:
        story = Story(path, partitioned)
        for what, detail in steps:
            story.tell(what, detail)
        expected, files = seen(path), files_of(path)
        state = run(delta_at(path).open())
        checkpointed(path, in_steps=in_steps)
        log = path / "_delta_log"
        for each in log.iterdir():
            if each.name[:20].isdigit() and not each.name.startswith(f"{expected['version']:020d}."):
                each.unlink()
        newest = log / f"{expected['version']:020d}.json"
        aside = newest.rename(path.parent / newest.name)
        assert seen(path) == expected
        assert files_of(path) == files
        reopened = run(delta_at(path).open())
        assert state is not None and reopened is not None
        assert (reopened.txns, reopened.txn_times, reopened.metadata) == (state.txns, state.txn_times, state.metadata)
        # And deltalake goes on from there. The version of a checkpoint itself is never cleaned up.
        aside.rename(newest)
        deltalake.write_deltalake(str(path), arrow([(99, "a", None)]), mode="append")
        assert DeltaTable(path).version() == expected["version"] + 1
        assert len(seen(path)["rows"]) == len(expected["rows"]) + 1
    finally:
        shutil.rmtree(path.parent)
