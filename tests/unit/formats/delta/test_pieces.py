"""Lines of a version that are decoded at once say what they say one by one."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakecommit.formats.delta.log import pieces
from lakecommit.formats.delta.log.file_actions import FileKind
from lakecommit.formats.delta.log.pieces import Piece, decoded, pieces_backwards

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
VECTOR = st.fixed_dictionaries(
    {"storageType": st.sampled_from(["u", "i"]), "pathOrInlineDv": TEXT, "sizeInBytes": st.integers(0, 99)},
    optional={"offset": st.integers(0, 99), "cardinality": st.integers(0, 99)},
)


def actions(columns: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    values = st.fixed_dictionaries({column: st.none() | TEXT for column in columns})
    needed = {"path": TEXT, "partitionValues": values, "dataChange": st.booleans()}
    vector = {"deletionVector": st.none() | VECTOR, "baseRowId": st.integers(0, 2**62)}
    add = st.fixed_dictionaries(
        {**needed, "size": st.integers(0, 2**62), "modificationTime": st.integers(0, 2**62)},
        optional={**vector, "stats": st.none() | TEXT, "tags": st.none() | st.dictionaries(TEXT, TEXT, max_size=2)},
    )
    remove = st.fixed_dictionaries(
        needed, optional={**vector, "deletionTimestamp": st.integers(0, 2**62), "size": st.integers(0, 99)}
    )
    one = st.one_of(
        st.fixed_dictionaries({"add": add}),
        st.fixed_dictionaries({"remove": remove}),
        st.fixed_dictionaries({"cdc": needed_of(values)}),
        st.fixed_dictionaries({"txn": st.fixed_dictionaries({"appId": TEXT, "version": st.integers(0, 9)})}),
        st.fixed_dictionaries({"txn": st.none(), "add": add}),
    )
    return one


def needed_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"path": TEXT, "partitionValues": values, "size": st.integers(0, 9)})


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    columns = draw(st.sampled_from([(), ("day",), ("day", "a b"), ("größe", "day", "n")]))
    one = actions(columns) if draw(st.booleans()) else st.one_of(actions(columns), actions(("other",)))
    found = draw(st.lists(one, max_size=6))
    escaped = draw(st.booleans())
    end = draw(st.sampled_from(["\n", "\r\n", "\n\n"]))
    return "".join(json.dumps(each, ensure_ascii=escaped, separators=(",", ":")) + end for each in found).encode()


def told(piece: Piece) -> Any:
    others = [each for each in piece.others if "cdc" not in each]
    return [[list(files.to_dicts()) for files in (piece.adds, piece.removes)], list(piece.kinds), others]


@settings(max_examples=300, deadline=None)
@given(bodies())
def test_decoded_at_once_they_say_what_they_say_one_by_one(body: bytes) -> None:
    assert told(decoded(body)) == told(pieces._one_by_one(body))


@settings(max_examples=50, deadline=None)
@given(bodies(), st.integers(1, 400))
def test_a_body_is_the_sum_of_its_pieces(body: bytes, size: int) -> None:
    files, kinds, others = told(pieces._one_by_one(body))
    found = [told(each) for each in pieces_backwards(body, size)][::-1]
    assert [[action for each in found for action in each[0][kind]] for kind in (0, 1)] == files
    assert [kind for each in found for kind in each[1]] == kinds
    assert [other for each in found for other in each[2]] == others


USUAL = {"path": "a", "partitionValues": {"day": "1"}, "size": 1, "modificationTime": 2, "dataChange": True}
REMOVED = {"path": "a", "partitionValues": {"day": None}, "deletionTimestamp": 3, "dataChange": True, "stats": "{}"}


@pytest.mark.parametrize(
    "unusual",
    [
        {"add": {**USUAL, "partitionValues": {"month": "1"}}},
        {"add": {**USUAL, "tags": {"a": "b"}}},
        {"add": {**USUAL, "unheard": {"of": [1]}}},
        {"add": {**USUAL, "partitionValues": None}},
    ],
)
def test_what_nearly_nobody_writes_is_read_all_the_same(unusual: dict[str, Any]) -> None:
    lines = [{"add": USUAL}, unusual]
    body = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
    assert pieces._by_arrow(body) is None
    assert next(decoded(body).adds.to_dicts()) == USUAL
    assert decoded(body).kinds == [FileKind.ADD, FileKind.ADD]


def test_what_nearly_everybody_writes_is_decoded_at_once() -> None:
    lines = [{"commitInfo": {"add": 1}}, {"add": USUAL}, {"remove": REMOVED}, {"add": USUAL}]
    body = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
    found = pieces._by_arrow(body)
    assert found is not None
    assert told(found) == told(pieces._one_by_one(body))


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b'{"add":1}',
        b'{"add":{}}',
        b'{"add":{"path":1}}',
        b'{"remove":{"path":null}}',
        b'{"add":{"path":"\xff"}}',
    ],
)
def test_what_is_no_action_is_an_error(line: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError, pa.ArrowException)):
        decoded(line + b"\n").adds.logical_files()
