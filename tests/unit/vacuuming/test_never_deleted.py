"""What a vacuum never deletes, clause by clause; and what a listing finds that nobody names."""

from __future__ import annotations

import asyncio

import pytest

from lakecommit.errors import CorruptState, UnsupportedTable
from lakecommit.vacuuming.sparing import is_spared
from tests.lake import QUERY, Lake

from .tools import VECTORS, Table, add, remove, run, vector, vector_file


def aged(*versions, days=8, **more):
    table = Table(*versions, **more)
    table.pass_days(days)
    return table


def test_a_listing_finds_old_files_that_nobody_names_and_no_others():
    table = Table([add("a"), add("p=1/b")], [remove("a")])
    for path in ("orphan", "p=1/orphan", "_change_data/orphan", "ab/deletion_vector_x.bin"):
        table.put(path)
    for path in ("_hidden/x", ".hidden/x", "p=1/.x.crc", "_started", "_spark_metadata/0", "_delta_log/_sidecars/x"):
        table.put(path)
    stays = {path for path in table.paths() if path.startswith(("_h", ".h", "p=1/.", "_st", "_spark"))}
    table.pass_days(8)
    table.put("young")
    kinds = {each.name: each.files for each in table.survey(full=True).kinds}
    assert kinds == {"data file": 1, "file that no version names": 4}
    table.apply(full=True)
    assert table.files() == stays | {"p=1/b", "young"}
    assert "_delta_log/_sidecars/x" in table.paths()


def test_files_of_partitions_whose_column_is_called_like_a_hidden_directory_go():
    metadata = {"partitionColumns": ["_day"]}
    table = aged([add("_day=1/a"), add("_hour=1/a")], [remove("_day=1/a"), remove("_hour=1/a")], metadata=metadata)
    table.apply()
    assert table.files() == {"_hour=1/a"}


@pytest.mark.parametrize(
    "path", ["../other/a", "x/../a", "./a", "x//a", "/etc/a", "a\nb", "_delta_log/a", "_lakecommit/a"]
)
def test_odd_names_are_never_deleted(path):
    assert is_spared(path, ())
    table = aged([add("a")], [remove(path)])
    table.apply()
    assert table.survey().all.files == 0


def test_change_files_go_where_a_format_has_them():
    assert is_spared("_changes/a", ())
    assert not is_spared("_changes/a", (), "_changes")


def test_names_of_the_log_are_decoded():
    table = aged([add("p=a%2520b/x%20y")], [remove("p=a%2520b/x%20y")])
    table.put("p=a%20b/x y")
    table.apply()
    assert "p=a%20b/x y" not in table.files()


@pytest.mark.parametrize("uri", ["s3a://bucket/table/p=1/a%20b", "file:///t/p=1/a%20b", "/t/p=1/a%20b"])
def test_a_file_that_the_log_may_mean_by_a_whole_path_stays(uri):
    """A shallow clone names files of another table so; and this table may be spelled in another way."""
    removed = [remove("p=1/a%20b"), remove("p=1/c")]
    table = aged([add("p=1/a%20b"), add("p=1/c"), {"add": {**add("x")["add"], "path": uri}}], removed)
    table.put("p=1/a b")
    table.put("q/a b")
    table.pass_days(8)
    table.apply(full=True)
    assert {"p=1/a b", "q/a b"} <= table.files()
    assert "p=1/c" not in table.files()


def test_a_vector_of_a_whole_path_is_elsewhere():
    whole = {**vector(1), "storageType": "p", "pathOrInlineDv": f"s3://other/{vector_file(1)}"}
    inline = {**vector(1), "storageType": "i", "pathOrInlineDv": "00000"}
    table = aged([add("a", whole), add("b", inline)], [remove("a", whole), remove("b", inline)], protocol=VECTORS)
    table.put(vector_file(1))
    table.pass_days(8)
    table.apply(full=True)
    assert table.files() == {vector_file(1)}


def test_what_versions_within_the_retention_have_removed_is_nobodys_orphan():
    one = vector(1)
    table = aged([add("a"), add("b", one)], protocol=VECTORS)
    table.put(vector_file(1))
    table.pass_days(8)
    table.commit(remove("a"), remove("b", one))
    table.apply(full=True)
    assert table.files() == {"a", "b", vector_file(1)}


def test_what_only_a_checkpoint_names_is_nobodys_orphan():
    one = vector(1)
    table = Table([add("a"), add("b", one)], protocol=VECTORS)
    table.put(vector_file(1))
    table.checkpoint(add("a"), add("b", one), protocol=VECTORS)
    table.forget_before(1)
    table.commit(add("c"))
    table.pass_days(8)
    table.put("orphan")
    table.pass_days(8)
    table.apply(full=True)
    assert table.files() == {"a", "b", "c", vector_file(1)}


class TestAfterALogWasCleanedUp:
    """Versions 0 to 2 are gone, of which 2 has removed x and y; the checkpoint has forgotten x."""

    @pytest.fixture
    def table(self):
        table = Table([add("x"), add("y"), add("z")], [remove("x"), remove("y")], [remove("z"), add("a")])
        table.checkpoint(add("a"), remove("y"), remove("z"))
        table.commit(add("b"))
        table.forget_before(3)
        return table

    def test_it_names_the_versions_that_nobody_knows(self, table):
        table.pass_days(8)
        found = table.survey()
        assert found.missing == (0, 2)
        table.apply()
        assert table.files() == {"x", "a", "b"}, "a checkpoint's tombstones are known"
        assert table.survey().missing is None

    def test_a_listing_finds_the_rest(self, table):
        table.pass_days(8)
        table.apply(full=True)
        assert table.files() == {"a", "b"}

    @pytest.mark.parametrize("full", [False, True])
    def test_what_they_removed_may_be_younger_than_the_retention(self, table, full):
        # Nobody knows when version 2 ended, but the first that is there is young.
        table.apply(full=full)
        assert table.files() == {"x", "y", "z", "a", "b"}

    @pytest.mark.parametrize("full", [False, True])
    def test_a_lease_of_a_version_that_is_gone_keeps_them(self, table, full):
        table.pass_days(8)
        table.lease(1)
        table.apply(full=full)
        assert table.files() == {"x", "y", "z", "a", "b"}

    def test_after_a_vacuum_nothing_is_missing(self, table):
        table.put("_lakecommit/vacuum/swept/00000000000000000002.json")
        table.pass_days(8)
        assert table.survey().missing is None


def lake_with_an_epoch(*, sealed):
    """On a clock of its own; the files of the epoch are pending, or of an attempt that nobody has heard of."""
    lake = Lake.in_memory()

    async def write():
        committer = lake.idle_committer()
        planned = await committer.plan(lake.schema, lake.settings, queries=[QUERY])
        await lake.format().create(lake.schema, (), {})
        report = await lake.report(planned, 0, 0, [1, 2])
        if sealed:
            await lake.seal_only(committer, 0, [report])
        return await lake.paths()

    return lake, asyncio.run(write())


@pytest.mark.parametrize("sealed", [True, False])
def test_what_writers_have_announced_stays(sealed):
    lake, files = lake_with_an_epoch(sealed=sealed)
    assert files
    table = Table()
    table.store, table.clock = lake.store, lake.clock
    lake.pass_minutes(30 * 24 * 60)
    run(lake.store.put("orphan", b"{}"))
    lake.pass_minutes(30 * 24 * 60)
    table.apply(full=True)
    assert table.files() == set(files)
    # Once nobody names it, it goes.
    run(lake.store.delete([path for path in table.paths("_lakecommit/users")]))
    table.apply(full=True)
    assert table.files() == set()


def test_what_writers_have_announced_is_read_before_the_log():
    """An epoch that is committed in between is in one of the two."""
    lake, files = lake_with_an_epoch(sealed=True)
    table = Table()
    table.store, table.clock = lake.store, lake.clock
    lake.pass_minutes(30 * 24 * 60)
    vacuum = table.vacuum(full=True)
    read = vacuum._format.log_to_vacuum

    async def read_after_a_commit(*given):
        committer = lake.committer()
        await committer.plan(lake.schema, lake.settings, queries=[QUERY])
        await committer.drain()
        await lake.store.delete(await lake.paths("_lakecommit/users"))
        return await read(*given)

    vacuum._format.log_to_vacuum = read_after_a_commit
    run(vacuum.apply())
    assert table.files() == set(files)


def test_a_manifest_that_cannot_be_read_stops_it():
    lake, files = lake_with_an_epoch(sealed=False)
    table = Table()
    table.store, table.clock = lake.store, lake.clock
    (manifest,) = [path for path in table.paths("_lakecommit/users") if "/writers/" in path]
    run(lake.store.put(manifest, b"damaged"))
    lake.pass_minutes(30 * 24 * 60)
    with pytest.raises(CorruptState):
        table.apply(full=True)
    assert table.files() == set(files)
    run(lake.store.put(manifest.replace(".avro", ".later"), b""))
    run(lake.store.delete([manifest]))
    with pytest.raises(UnsupportedTable, match="newer lakecommit"):
        table.apply(full=True)
    assert table.files() == set(files)


def test_a_file_that_is_uploaded_while_the_table_is_listed_is_young():
    """The clock is asked first."""
    table = aged([add("a")])
    listed = table.store.list

    async def list_late(prefix, **more):
        if not prefix:
            table.pass_days(30)
            await table.store.put("late", b"{}")
            table.pass_days(30)
        async for page in listed(prefix, **more):
            yield page

    table.store.list = list_late
    table.apply(full=True)
    assert "late" in table.files()


def test_what_is_restored_before_it_is_deleted_stays():
    table = aged([add("a"), add("b")], [remove("a"), remove("b")])
    vacuum = table.vacuum()
    after = vacuum._format.versions_after

    async def after_a_restore(version):
        if table.version == 2:
            table.version += 1
            body = b'{"add":{"path":"a","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}'
            await table.store.put(f"_delta_log/{table.version:020d}.json", body)
        return await after(version)

    vacuum._format.versions_after = after_a_restore
    done = run(vacuum.apply())
    assert table.files() == {"a"} and done.swept.restored == 1 and done.swept.deleted == 1


@pytest.mark.parametrize("gone", [2, 3])
def test_a_log_that_was_cleaned_up_while_it_slept_stops_it(gone):
    """Otherwise a restore would look as if nothing had come."""
    table = aged([add("a"), add("b")], [remove("a"), remove("b")])
    vacuum = table.vacuum()
    after = vacuum._format.versions_after

    async def after_a_clean_up(version):
        for number in (3, 4):
            await table.store.put(f"_delta_log/{number:020d}.json", b"{}")
        await table.store.delete([f"_delta_log/{number:020d}.json" for number in range(gone + 1)])
        return await after(version)

    vacuum._format.versions_after = after_a_clean_up
    with pytest.raises(Exception, match="run it again"):
        run(vacuum.apply())
    assert table.files() == {"a", "b"}


def test_requests_do_not_grow_with_the_files():
    names = [f"f{number:05d}" for number in range(2500)]
    table = Table([add(name) for name in names], [remove(name) for name in names])
    table.checkpoint()
    table.pass_days(8)
    before = dict(table.store.counts)
    listed: list[str] = []
    lists = table.store.list

    def listing(prefix, **more):
        listed.append(prefix)
        return lists(prefix, **more)

    table.store.list = listing
    assert table.apply().swept.deleted == 2500
    spent = {verb: count - before.get(verb, 0) for verb, count in table.store.counts.items()}
    assert "" not in listed and listed.count("_delta_log") <= 4
    assert spent["delete"] == 3 + 1, "one for a thousand files, and one for the objects of the vacuum"
    assert sum(spent.values()) < 50, spent
