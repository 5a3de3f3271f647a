"""Clean-up of the log: what goes, what stays, in which order, and what is left when it is killed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any

import pytest

from lakecommit.formats.delta.upkeep import cleaning
from lakecommit.formats.delta.upkeep.expiry import young_sidecar_ms
from lakecommit.formats.delta.upkeep.retention import DAY_MS
from lakecommit.formats.upkeep import LogCleaned
from lakecommit.storage.location import open_store
from tests.lake.clocks import FakeClock
from tests.lake.stores import lines
from tests.unit.formats.delta.fakes import delta_on, metadata, parquet_checkpoint, protocol, run, table_features, txn
from tests.unit.formats.delta.logs import LOG, Store, add, parquet, table

NOW_MS = FakeClock().wall_ms()
MIDNIGHT_MS = (NOW_MS - 30 * DAY_MS) // DAY_MS * DAY_MS
UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def old_log(checkpoints: Sequence[int] = (4, 8, 12), versions: int = 16, last_old: int = 10, **more: Any) -> Store:
    """A log whose versions up to `last_old` have expired, with checkpoints of lakecommit's."""
    store = Store()
    for version in range(versions):
        head = (protocol(), metadata(**more)) if version == 0 else ()
        store.put_commit(version, *head, add(f"f{version}"), txn("app", version))
        store.objects[f"{LOG}{version:020d}.crc"] = b"{}"
        if version in checkpoints:
            run(delta_on(store).checkpoint())
    for path in store.objects:
        if path.removeprefix(LOG)[:20].isdigit():
            version = int(path.removeprefix(LOG)[:20])
            store.modified_ms[path] = MIDNIGHT_MS if version <= last_old else MIDNIGHT_MS + 1
    return store


def versions(store: Store, suffix: str = ".json") -> list[int]:
    found = (path.removeprefix(LOG) for path in store.objects)
    return sorted(int(name[:20]) for name in found if name[20:] == suffix)


def clean(store: Any, oldest_read: int | None = None) -> LogCleaned:
    return run(delta_on(store).clean_log(oldest_read))


def test_a_log_begins_with_a_checkpoint_afterwards() -> None:
    store = old_log()
    before = run(delta_on(store).open())
    survey = run(delta_on(store).survey_log())
    assert (survey.expired, survey.boundary, survey.files) == (8 + 8 + 1, 8, 16)
    assert clean(store) == LogCleaned(deleted=17, boundary=8)
    assert versions(store) == versions(store, ".crc") == list(range(8, 16))
    assert versions(store, ".checkpoint.parquet") == [8, 12]
    assert run(delta_on(store).open()) == before
    assert clean(store) == LogCleaned(boundary=8), "the same day finds nothing more"


def test_without_any_hint_it_reads_as_well() -> None:
    store = old_log()
    clean(store)
    del store.objects[LOG + "_last_checkpoint"]
    state = run(delta_on(store).open())
    assert state is not None and (state.version, state.txns) == (15, {"app": 15})
    assert run(delta_on(store).survey_log()).files == 16


@pytest.mark.parametrize(
    ("case", "boundary"),
    [
        ({"last_old": 8}, 8),
        ({"last_old": 7}, 4),
        ({"last_old": 3}, None),
        ({"last_old": -1}, None),
        ({"checkpoints": ()}, None),
        ({"last_old": 15}, 12),
    ],
)
def test_the_boundary_is_a_checkpoint_that_is_old_enough(case: dict[str, Any], boundary: int | None) -> None:
    store = old_log(**case)
    assert clean(store).boundary == boundary
    assert versions(store) == list(range(boundary or 0, 16))


@pytest.mark.parametrize(("oldest_read", "boundary"), [(9, 8), (8, 8), (7, 4), (3, None), (14, 8)])
def test_what_is_still_read_stays(oldest_read: int, boundary: int | None) -> None:
    store = old_log()
    assert clean(store, oldest_read).boundary == boundary
    assert versions(store) == list(range(boundary or 0, 16))


def test_times_that_go_back_are_of_clocks_that_differ() -> None:
    store = old_log()
    store.modified_ms[f"{LOG}{5:020d}.json"] = MIDNIGHT_MS + 1
    assert clean(store).boundary == 4


def test_a_hole_keeps_everything() -> None:
    store = old_log()
    del store.objects[f"{LOG}{9:020d}.json"]
    assert clean(store) == LogCleaned()


@pytest.mark.parametrize(
    ("configuration", "reason"),
    [
        ({"delta.enableExpiredLogCleanup": "false"}, "enableExpiredLogCleanup"),
        ({"delta.logRetentionDuration": "a while"}, "no duration"),
        ({"delta.logRetentionDuration": "interval 365 days"}, None),
    ],
)
def test_the_table_may_keep_its_log(configuration: dict[str, str], reason: str | None) -> None:
    store = old_log(configuration=configuration)
    found = clean(store)
    assert (found.deleted, found.boundary) == (0, None)
    assert (reason or "") in (found.kept or "")
    assert versions(store) == list(range(16))


@pytest.mark.parametrize(("protected", "boundary"), [(9, None), (8, 8), (0, 8)])
def test_a_protected_log_goes_as_a_whole(protected: int, boundary: int | None) -> None:
    configuration = {"delta.requireCheckpointProtectionBeforeVersion": str(protected)}
    store = old_log()
    head = (table_features("checkpointProtection"), metadata(configuration=configuration))
    store.put_commit(15, *head, add("f15"), txn("app", 15))
    found = clean(store)
    assert found.boundary == boundary
    assert ("requireCheckpointProtection" in (found.kept or "")) == (boundary is None)


def test_features_that_nobody_here_knows_keep_it() -> None:
    store = old_log()
    store.put_commit(15, table_features("someday"), add("f15"))
    assert "someday" in (clean(store).kept or "")


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"x" * 1000,
        # One of another table, as a copied log would have it.
        parquet_checkpoint(protocol(), metadata(table_id="other")),
        parquet_checkpoint(txn("app", 1)),
    ],
)
def test_a_checkpoint_that_does_not_read_back_keeps_what_is_before_it(damage: bytes) -> None:
    store = old_log()
    store.objects[f"{LOG}{8:020d}.checkpoint.parquet"] = damage
    found = clean(store)
    assert found.deleted == 0 and "checkpoint" in (found.kept or "")
    assert versions(store) == list(range(16))


def test_a_checkpoint_whose_files_cannot_be_read_keeps_what_is_before_it() -> None:
    store = old_log(checkpoints=(4,), last_old=9)
    head = ({"checkpointMetadata": {"version": 8}}, protocol(), metadata(), {"sidecar": {"path": "gone.parquet"}})
    store.objects[f"{LOG}{8:020d}.checkpoint.{UUID}.json"] = lines(*head)
    found = clean(store)
    assert found.deleted == 0 and "gone.parquet" in (found.kept or "")


def test_compacted_versions_and_broken_checkpoints_go_and_strangers_stay() -> None:
    store = old_log()
    going = [
        f"{0:020d}.{7:020d}.compacted.json",
        f"{8:020d}.{9:020d}.compacted.json",
        f"{5:020d}.checkpoint.0000000001.0000000002.parquet",
        f"{6:020d}.checkpoint.{UUID}.json",
    ]
    staying = [f"{9:020d}.{11:020d}.compacted.json", f"{3:020d}.notes.txt", "_staged_commits/x.json", "y.json"]
    store.objects.update({LOG + name: b"" for name in (*going, *staying)})
    clean(store)
    left = {path.removeprefix(LOG) for path in store.objects}
    assert not left & set(going)
    assert left >= set(staying)


def test_versions_go_first_and_from_the_oldest_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaning, "DELETED_AT_ONCE", 1)
    store = old_log()
    store.requests.clear()
    clean(store)
    deleted = [path.removeprefix(LOG) for verb, path in store.requests if verb == "delete"]
    assert deleted[-1] == f"{4:020d}.checkpoint.parquet"
    assert deleted[:-1] == sorted(deleted[:-1])


def test_killed_at_any_point_it_leaves_a_log_that_reads_and_is_cleaned_up_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cleaning, "DELETED_AT_ONCE", 1)
    whole = old_log()
    expected = run(delta_on(whole).open())
    for at in range(18):
        store = Store(dict(whole.objects))
        store.modified_ms = whole.modified_ms
        left = at

        class Killed(Exception):
            pass

        async def delete(paths: Sequence[str], store: Store = store) -> Sequence[str]:
            nonlocal left
            if not left:
                raise Killed
            left -= 1
            return await Store.delete(store, paths)

        store.delete = delete  # type: ignore[method-assign]
        with contextlib.suppress(Killed):
            clean(store)
        assert run(delta_on(store).open()) == expected
        assert run(delta_on(store).survey_log()).files == 16
        del store.delete
        clean(store)
        assert versions(store) == list(range(8, 16))


def test_a_deletion_that_is_not_confirmed_is_said() -> None:
    store = old_log()

    async def delete(paths: Sequence[str]) -> Sequence[str]:
        return paths[:1]

    store.delete = delete  # type: ignore[method-assign]
    assert clean(store) == LogCleaned(deleted=15, boundary=8, unconfirmed=2)


def v2_log() -> Store:
    """Checkpoints 4 and 8 with sidecars, of which some were reused; and sidecars of nobody."""
    store = old_log(checkpoints=(), last_old=10)
    for version, sidecars in ((4, ("one", "two")), (8, ("two", "three"))):
        named = [{"sidecar": {"path": f"{name}.parquet"}} for name in sidecars]
        head = ({"checkpointMetadata": {"version": version}}, protocol(), metadata(), *named)
        store.objects[f"{LOG}{version:020d}.checkpoint.{UUID}.json"] = lines(*head)
    young_ms = young_sidecar_ms(NOW_MS)
    for name, written_ms in (("one", 0), ("two", 0), ("three", 0), ("lost", young_ms - 1), ("young", young_ms)):
        path = f"{LOG}_sidecars/{name}.parquet"
        store.objects[path] = parquet(add(name))
        store.modified_ms[path] = written_ms
    return store


def sidecars(store: Store) -> list[str]:
    prefix = f"{LOG}_sidecars/"
    return sorted(path.removeprefix(prefix) for path in store.objects if path.startswith(prefix))


def test_sidecars_go_when_no_checkpoint_names_them() -> None:
    store = v2_log()
    clean(store)
    assert sidecars(store) == ["three.parquet", "two.parquet", "young.parquet"]


def test_a_clean_up_that_was_killed_before_the_sidecars_is_made_up_for() -> None:
    store = v2_log()
    for version in range(8):
        del store.objects[f"{LOG}{version:020d}.json"]
    del store.objects[f"{LOG}{4:020d}.checkpoint.{UUID}.json"]
    clean(store)
    assert sidecars(store) == ["three.parquet", "two.parquet", "young.parquet"]


def test_sidecars_stay_where_a_checkpoint_cannot_be_read() -> None:
    store = v2_log()
    store.objects[f"{LOG}{12:020d}.checkpoint.{UUID}.parquet"] = b"damaged"
    clean(store)
    assert len(sidecars(store)) == 5
    assert versions(store)[0] == 8


def test_on_local_disk_checksums_of_hadoop_go_with_their_files(tmp_path: Any) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    source = old_log()
    for path, body in source.objects.items():
        (tmp_path / path).write_bytes(body)
        when = source.modified_ms.get(path, NOW_MS) / 1000
        os.utime(tmp_path / path, (when, when))
    for version in (0, 13):
        (log / f".{version:020d}.json.crc").write_bytes(b"crc")
    clean(open_store(str(tmp_path), {}))
    assert sorted(path.name for path in log.glob(".*")) == [f".{13:020d}.json.crc"]


def test_a_log_without_sidecars_takes_few_requests() -> None:
    store = table((add("a"),))
    store.page_size = 1000
    store.requests.clear()
    clean(store)
    assert len(store.requests) <= 6, store.requests
