"""What a vacuum deletes from the records of the log alone, and what it never does."""

from __future__ import annotations

import pytest

from lakecommit.errors import CorruptState, InvalidInput, UnsupportedTable
from lakecommit.vacuuming.asked import DAY_MS

from .tools import VECTORS, Table, add, cdc, remove, run, vector, vector_file


def test_what_was_removed_long_ago_goes_and_what_is_live_or_young_stays():
    table = Table([add("a"), add("b"), add("c")], [remove("a")], [add("d")])
    table.pass_days(8)
    table.commit(remove("b"))
    done = table.apply()
    assert table.files() == {"b", "c", "d"}
    assert (done.found.newest, done.found.old, done.found.version, done.swept.deleted) == (4, 3, 3, 1)
    assert table.marks() == ["cuts/00000000000000000003", "swept/00000000000000000003.json"]
    # The version that removed b ends when the next one begins, and that is in seven days from then.
    table.pass_days(6)
    table.commit(add("e"))
    table.pass_days(6)
    assert table.apply().found.version == 4, "the log object of the version after it is what has to be old"
    assert table.files() == {"c", "d", "e"}


def test_a_dry_run_writes_nothing_and_says_the_same():
    table = Table([add("a"), add("p=1/b")], [remove("a"), remove("p=1/b", size=None)])
    table.pass_days(8)
    before = table.paths()
    found = table.survey()
    assert table.paths() == before
    assert (found.all.files, found.all.size_bytes, found.all.unsized) == (2, 10, 1)
    assert [(each.name, each.files) for each in found.directories] == [("", 1), ("p=1", 1)]
    assert [each.name for each in found.kinds] == ["data file"]
    assert table.apply().found.all == found.all


def test_nothing_is_retained_if_that_is_asked_for():
    table = Table([add("a")], [remove("a")])
    table.apply(retain_ms=0, short=True)
    assert table.files() == set()


@pytest.mark.parametrize("asked", [{"retain_ms": 6 * DAY_MS}, {"full": True, "orphans_after_ms": DAY_MS}])
def test_less_than_the_tables_own_retention_has_to_be_meant(asked):
    table = Table([add("a")], [remove("a")])
    before = table.paths()
    for attempt in (table.survey, table.apply):
        with pytest.raises(InvalidInput, match="--short-retention"):
            attempt(**asked)
    assert table.paths() == before
    table.apply(**asked, short=True)


def test_the_tables_own_retention_is_the_default():
    table = Table(
        [add("a")], [remove("a")], metadata={"configuration": {"delta.deletedFileRetentionDuration": "2 days"}}
    )
    table.pass_days(3)
    assert table.apply().found.retain_ms == 2 * DAY_MS
    assert table.files() == set()


def test_a_retention_that_is_no_duration_is_for_ever():
    table = Table([add("a")], [remove("a")], metadata={"configuration": {"delta.deletedFileRetentionDuration": "soon"}})
    with pytest.raises(InvalidInput, match="for ever"):
        table.apply()
    with pytest.raises(InvalidInput, match="for ever"):
        table.apply(retain_ms=90 * DAY_MS)


def test_what_was_removed_and_added_again_stays():
    table = Table([add("a"), add("b")], [remove("a"), remove("b")], [add("a")], [remove("b")], [add("c")])
    table.pass_days(8)
    table.apply()
    assert table.files() == {"a", "c"}


def test_what_a_version_both_removes_and_adds_stays():
    """As a deletion vector comes to a file; in whatever order it says so."""
    new = vector(1)
    table = Table([add("a"), add("b")], [add("a", new), remove("a"), remove("b"), add("b", new)], protocol=VECTORS)
    table.put(vector_file(1))
    table.pass_days(8)
    assert table.survey().all.files == 0
    table.apply()
    assert table.files() == {"a", "b", vector_file(1)}


def test_vectors_go_with_the_last_file_that_has_one_in_them():
    one, two = vector(1, 1), vector(1, 40)
    table = Table(
        [add("a"), add("b")],
        [remove("a"), add("a", one), remove("b"), add("b", two)],
        [remove("a", one)],
        protocol=VECTORS,
    )
    table.put(vector_file(1))
    table.pass_days(8)
    table.apply()
    assert table.files() == {"b", vector_file(1)}
    table.commit(remove("b", two))
    table.pass_days(8)
    table.apply()
    assert table.files() == set()


@pytest.mark.parametrize("swept_before", [False, True])
def test_vectors_that_only_a_checkpoint_or_a_swept_version_names_stay(swept_before):
    """The files that share them were written before what is read as removals, and before or after the checkpoint."""
    one, two, three = vector(1, 1), vector(1, 40), vector(2, 1)
    table = Table([add("a", one), add("b", two), add("x")], protocol=VECTORS)
    for number in (1, 2):
        table.put(vector_file(number))
    table.checkpoint(add("a", one), add("b", two), add("x"), protocol=VECTORS)
    table.commit(add("c", three), add("d", vector(2, 40)))
    table.commit(remove("x"))
    if swept_before:
        table.pass_days(8)
        assert table.apply().found.version == 3
    table.commit(remove("a", one), remove("c", three))
    table.pass_days(8)
    table.apply()
    assert table.files() == {"b", "d", vector_file(1), vector_file(2)}


def test_a_vector_is_found_below_its_random_directory():
    inside = vector(3, directory="ab")
    table = Table([add("a", inside)], [remove("a", inside)], protocol=VECTORS)
    table.put(f"ab/{vector_file(3)}")
    table.pass_days(8)
    assert {each.name: each.files for each in table.survey().kinds} == {"data file": 1, "deletion vectors": 1}
    table.apply()
    assert table.files() == set()


def test_change_files_go_when_the_version_that_made_them_is_no_longer_read():
    table = Table([add("a")], [remove("a"), add("b"), cdc("_change_data/c1")], [cdc("_change_data/c2")])
    table.pass_days(8)
    table.apply()
    assert table.files() == {"b", "_change_data/c2"}, "the newest version has its changes"
    table.commit(add("d"))
    table.pass_days(8)
    table.apply()
    assert table.files() == {"b", "d"}


def test_a_lease_keeps_what_its_version_or_a_later_one_needs():
    table = Table([add("a"), add("b"), add("c")], [remove("a")], [remove("b"), cdc("_change_data/c")], [remove("c")])
    table.pass_days(8)
    table.lease(2)
    found = table.survey()
    assert [(each.lease.name.version, each.files.files) for each in found.held_back] == [(2, 3)]
    assert (found.old, found.version, found.all.files) == (4, 2, 1)
    done = table.apply()
    assert done.found.held_back == found.held_back
    assert table.files() == {"b", "c", "_change_data/c"}
    # It expires, and the first vacuum after that takes everything, and what is left of the lease.
    table.pass_days(1)
    table.apply()
    assert table.files() == set()
    assert table.paths("_lakecommit/leases") == []


def test_a_lease_is_good_for_a_minute_longer():
    table = Table([add("a")], [remove("a")])
    table.pass_days(8)
    table.lease(1, ttl_s=60)
    table.clock.wall += 119_000
    table.apply()
    assert table.files() == {"a"}
    table.clock.wall += 2_000
    table.apply()
    assert table.files() == set()


def test_a_lease_can_be_cut_off_by_its_name():
    table = Table([add("a")], [remove("a")])
    table.pass_days(8)
    lease = table.lease(1)
    with pytest.raises(InvalidInput, match="no lease"):
        table.apply(ignored=("b" * 32,))
    table.apply(ignored=(lease,))
    assert table.files() == set()
    assert len(table.paths("_lakecommit/leases")) == 1, "its holder learns that it is cut off"


@pytest.mark.parametrize("name", ["leases/what.json", "vacuum/plan/1.json"])
def test_a_name_that_is_not_understood_stops_it(name):
    table = Table([add("a")], [remove("a")])
    table.pass_days(8)
    table.put(f"_lakecommit/{name}")
    with pytest.raises(UnsupportedTable, match="newer lakecommit"):
        table.apply()
    assert table.files() == {"a"}


@pytest.mark.parametrize(
    ("feature", "why"),
    [
        ("catalogManaged", "catalog"),
        ("coordinatedCommits-preview", "catalog"),
        ("redirectReaderWriter-preview", "redirects"),
        ("icebergCompatV2", "Iceberg"),
        ("timeMachine", "not known"),
    ],
)
def test_features_that_may_need_more_than_the_log_says_are_refused(feature, why):
    table = Table([add("a")], [remove("a")], protocol={"writerFeatures": [feature]})
    table.pass_days(8)
    for attempt in (table.survey, table.apply):
        with pytest.raises(UnsupportedTable, match=f"{feature}.*{why}"):
            attempt()
    assert table.files() == {"a"} and table.marks() == []


def test_metadata_for_other_formats_is_refused():
    table = Table([add("a")], metadata={"configuration": {"delta.universalFormat.enabledFormats": "hudi"}})
    with pytest.raises(UnsupportedTable, match="hudi"):
        table.apply()


def test_a_feature_that_comes_while_the_log_is_read_is_refused():
    table = Table([add("a")], [remove("a")])
    table.pass_days(8)
    vacuum = table.vacuum()
    opened = vacuum._format.open

    async def open_and_let_in():
        state = await opened()
        if table.version == 2:
            table.version += 1
            body = (
                b'{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[],"writerFeatures":["x"]}}'
            )
            await table.store.put(f"_delta_log/{table.version:020d}.json", body)
        return state

    vacuum._format.open = open_and_let_in
    with pytest.raises(UnsupportedTable, match="feature x"):
        run(vacuum.apply())
    assert table.files() == {"a"}


def test_where_there_is_no_table_nothing_is_written():
    table = Table()
    run(table.store.delete(table.paths()))
    with pytest.raises(InvalidInput, match="no table"):
        table.apply()
    assert table.paths() == []


def test_a_log_with_a_hole_stops_it():
    table = Table([add("a")], [remove("a")], [add("b")])
    table.pass_days(8)
    run(table.store.delete(["_delta_log/00000000000000000002.json"]))
    with pytest.raises(CorruptState):
        table.apply()
    assert table.files() == {"a", "b"}


def test_what_is_removed_right_after_a_checkpoint_goes_with_its_vectors():
    """Otherwise it would be swept, and never be looked for again."""
    one = vector(1)
    table = Table([add("a", one), add("b")], protocol=VECTORS)
    table.put(vector_file(1))
    table.checkpoint(add("a", one), add("b"), protocol=VECTORS)
    table.commit(remove("a", one))
    table.pass_days(8)
    table.apply()
    assert table.files() == {"b"}


@pytest.mark.parametrize("pieces", [1, 100])
def test_a_large_version_is_read_piece_by_piece(pieces, monkeypatch):
    monkeypatch.setattr("lakecommit.formats.delta.log.vacuumed_log.WINDOW_BYTES", 100)
    monkeypatch.setattr("lakecommit.formats.pieces.PIECE_BYTES", 1000 // pieces)
    names = [f"f{number}" for number in range(20)]
    table = Table([add(name) for name in names], [*(remove(name) for name in names), add("f0"), remove("f1")])
    table.pass_days(8)
    table.apply()
    assert table.files() == {"f0"}


def test_a_classic_checkpoint_tells_the_same():
    """Written by lakecommit, with the columns of files alone fetched."""
    one = vector(1)
    versions = [add("a", one), add("b", vector(1, 40)), add("c")], [remove("c"), remove("b", vector(1, 40))]
    table = Table(*versions, protocol=VECTORS)
    table.put(vector_file(1))
    assert run(table.format().checkpoint()).files == 1
    table.forget_before(2)
    table.pass_days(8)
    table.commit(add("d"))
    table.apply()
    assert table.files() == {"a", "d", vector_file(1)}


@pytest.mark.parametrize("full", [False, True])
def test_a_file_that_got_vectors_before_what_is_left_of_the_log_stays(full):
    """The checkpoint has a tombstone of it without vectors, and nothing but the checkpoint says that it is live."""
    one = vector(1)
    table = Table([add("a"), add("b")], [remove("a"), add("a", one)], [remove("b")], protocol=VECTORS)
    table.put(vector_file(1))
    table.checkpoint(add("a", one), remove("a"), remove("b"), protocol=VECTORS)
    table.commit(add("c"))
    table.forget_before(4)
    table.pass_days(6)
    table.apply(full=full)
    assert table.files() == {"a", "b", "c", vector_file(1)}, "nobody knows when b was removed"
    assert table.survey(full=full).missing == (0, 3), "that is not swept"
    table.pass_days(2)
    table.apply(full=full)
    assert table.files() == {"a", "c", vector_file(1)}


@pytest.mark.parametrize("mark", ["swept/00000000000000000009.json", f"cuts/00000000000000000009-{'0' * 32}.json"])
def test_what_vacuums_of_a_table_before_have_noted_stops_it(mark):
    """Else what this one has removed would count as swept, and with a listing as nobody's."""
    table = Table([add("a"), add("b")], [remove("a")])
    table.checkpoint(add("b"))
    table.put(f"_lakecommit/vacuum/{mark}")
    table.pass_days(8)
    for attempt in (table.survey, table.apply):
        for full in (False, True):
            with pytest.raises(UnsupportedTable, match=r"newest version is 2.*made again.*delete _lakecommit/vacuum"):
                attempt(full=full)
    assert table.files() == {"a", "b"}
    run(table.store.delete(table.paths("_lakecommit")))
    table.apply()
    assert table.files() == {"b"}
