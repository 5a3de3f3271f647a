"""The durable place of a listener, as bytes, and the names of listeners."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakecommit.errors import CorruptState, InvalidInput
from lakecommit.listening.places import BEFORE_ALL, ListenerPlace
from lakecommit.listening.registry import Listeners
from lakecommit.model import Epoch, QueryId
from lakecommit.state import layout

from .lake import Counter, Recorder

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.integers(-1, layout.MAX_EPOCH), JSON)
def test_a_place_comes_back_as_it_was(epoch, state):
    for place in (ListenerPlace(Epoch(epoch)), ListenerPlace(Epoch(epoch), state, remembers=True)):
        assert ListenerPlace.from_bytes(place.to_bytes(), "path") == place


def test_a_place_before_all_epochs_is_null_and_only_what_is_remembered_is_there():
    assert json.loads(ListenerPlace(BEFORE_ALL).to_bytes()) == {"epoch": None}
    assert json.loads(ListenerPlace(Epoch(3), None, remembers=True).to_bytes()) == {"epoch": 3, "state": None}


@given(st.binary())
def test_whatever_is_there_is_a_place_or_damaged(body):
    try:
        assert ListenerPlace.from_bytes(body, "path").epoch >= -1
    except CorruptState as error:
        assert "path does not say how far its listener was told" in str(error)


@pytest.mark.parametrize("epoch", ["true", "-1", "1.5", '"3"', str(2**63)])
def test_an_epoch_is_a_number_of_an_epoch(epoch):
    with pytest.raises(CorruptState, match="its epoch is"):
        ListenerPlace.from_bytes(b'{"epoch": %s, "state": null}' % epoch.encode(), "path")


@given(st.from_regex(r"[0-9A-Za-z-]{1,64}", fullmatch=True), st.integers(0, layout.MAX_EPOCH + 1))
def test_a_name_comes_back_from_its_path(name, number):
    path = layout.place_path(QueryId("query"), name, number)
    assert layout.parse_place_path(path) == ("query", name, number)
    assert layout.parse_query(path) == "query"
    assert layout.parse_seal_path(path) is None


@pytest.mark.parametrize("name", ["", "a" * 65, "a/b", "..", "a b", "a.json", "ü", None, 3])
def test_other_names_are_refused(name):
    with pytest.raises(InvalidInput, match="letters, digits and hyphens"):
        Listeners([Recorder(name)])


def test_a_listener_without_a_method_or_with_half_a_memory_is_refused():
    class Deaf:
        name = "deaf"

    with pytest.raises(InvalidInput, match=r"deaf \(Deaf\) has no method on_snapshot"):
        Listeners([Deaf()])
    forgetful = Recorder()
    forgetful.state = lambda table, query: 1
    with pytest.raises(InvalidInput, match="give it both or none"):
        Listeners([forgetful])


def test_two_of_one_name_are_refused_and_then_none_is_added():
    listeners = Listeners()
    with pytest.raises(InvalidInput, match="two listeners are called recorder"):
        listeners.add([Counter(), Recorder(), Recorder()])
    assert list(listeners) == []
