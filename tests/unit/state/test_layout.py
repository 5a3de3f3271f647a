"""Every name parses in one way only, and no attempt can name another's files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakecommit.errors import CorruptState
from lakecommit.model import Attempt, AttemptId, Epoch, QueryId, TaskId
from lakecommit.state import layout

attempts = st.builds(
    Attempt,
    query=st.uuids().map(lambda value: QueryId(str(value))),
    epoch=st.integers(0, layout.MAX_EPOCH).map(Epoch),
    task=st.integers(0, 10**6).map(TaskId),
    id=st.uuids().map(lambda value: AttemptId(value.hex)),
)
ATTEMPT = Attempt(QueryId("query-1"), Epoch(7), TaskId(3), AttemptId("ab" * 16))


@given(attempts, st.integers(0, 10**6))
def test_manifest_names_round_trip(attempt, number):
    assert layout.parse_manifest_path(layout.manifest_path(attempt, number)) == (attempt, number)


@given(attempts)
def test_seal_names_round_trip(attempt):
    assert layout.parse_seal_path(layout.seal_path(attempt.query, attempt.epoch)) == (attempt.query, attempt.epoch)


@given(st.lists(st.integers(0, layout.MAX_EPOCH).map(Epoch), min_size=2))
def test_names_are_ordered_by_epoch(epochs):
    query = QueryId("q")
    assert [layout.seal_path(query, e) for e in sorted(epochs)] == sorted(layout.seal_path(query, e) for e in epochs)


@given(
    attempts,
    st.integers(0, 10**6),
    st.sampled_from(["", "region=EU/", "a=%2F/b=..%2F../", "_hidden=1/.x=2/", "aZ/", "0/"]),
)
def test_own_data_files_pass(attempt, number, directory):
    layout.check_data_path(directory + layout.data_file_name(attempt, number), attempt)


@given(attempts, attempts)
def test_files_of_another_attempt_do_not_pass(one, other):
    if one.id != other.id:
        with pytest.raises(CorruptState, match="outside of its own attempt"):
            layout.check_data_path(layout.data_file_name(one, 0), other)


@pytest.mark.parametrize(
    "path",
    [
        "../" + layout.data_file_name(ATTEMPT, 0),
        "./" + layout.data_file_name(ATTEMPT, 0),
        "/" + layout.data_file_name(ATTEMPT, 0),
        "a=1//" + layout.data_file_name(ATTEMPT, 0),
        "a=1/../b=2/" + layout.data_file_name(ATTEMPT, 0),
        "_delta_log/" + layout.data_file_name(ATTEMPT, 0),
        "plain-/" + layout.data_file_name(ATTEMPT, 0),
        "aZ/0/" + layout.data_file_name(ATTEMPT, 0),
        "a=1/aZ/" + layout.data_file_name(ATTEMPT, 0),
        "_delta_log/00000000000000000000.json",
        layout.data_file_name(ATTEMPT, 0) + "/x.parquet",
        layout.data_file_name(ATTEMPT, 0).replace("-0.parquet", "-00.parquet"),
        layout.data_file_name(ATTEMPT, 0).replace("-0.parquet", "-.parquet"),
        layout.data_file_name(ATTEMPT, 0) + "\n",
        "",
    ],
)
def test_names_outside_of_the_grammar_do_not_pass(path):
    with pytest.raises(CorruptState):
        layout.check_data_path(path, ATTEMPT)


@pytest.mark.parametrize(
    "path",
    [
        "_lakecommit/users/q/writers/7/3-" + "ab" * 16 + ".avro",
        "_lakecommit/users/q/writers/00000000000000000007/3-xy.avro",
        "_lakecommit/users/q/writers/00000000000000000007/3-" + "ab" * 16 + "-0.avro",
        "_lakecommit/users/q/writers/00000000000000000007/03-" + "ab" * 16 + ".avro",
        "_lakecommit/users/q/seals/00000000000000000007.avro",
        "_lakecommit/users/../x/writers/00000000000000000007/3-" + "ab" * 16 + ".avro",
    ],
)
def test_other_objects_are_not_taken_for_manifests(path):
    assert layout.parse_manifest_path(path) is None


@pytest.mark.parametrize("query", ["", "a/b", "..", "x" * 65, "a b"])
def test_a_commit_user_is_one_plain_path_segment(query):
    with pytest.raises(ValueError, match="query"):
        layout.seals_prefix(QueryId(query))
