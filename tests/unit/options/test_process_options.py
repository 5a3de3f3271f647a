"""Options of the process: taken from the session or the environment, and refused where a write brings them."""

import pytest

from lakecommit.errors import InvalidInput
from lakecommit.options.parsing import parse_options
from lakecommit.options.process import process_options, unheeded

VARIABLE = "LAKECOMMIT_COMMITTER_MEMORY"


def test_the_default():
    assert process_options({}, {}).committer_memory_bytes == 32 * 1024**2


@pytest.mark.parametrize(("text", "size"), [("1m", 1024**2), ("1GiB", 1024**3), ("64g", 64 * 1024**3)])
def test_memory_of_the_committer(text, size):
    assert process_options({"committermemory": text}, {}).committer_memory_bytes == size
    assert process_options({}, {VARIABLE: text}).committer_memory_bytes == size


def test_the_session_is_nearer_than_the_environment():
    assert process_options({"committerMemory": "2m"}, {VARIABLE: "1m"}).committer_memory_bytes == 2 * 1024**2


@pytest.mark.parametrize("text", ["0", "1023", "65g", "32 megs"])
@pytest.mark.parametrize(
    ("session", "environment", "name"),
    [("committerMemory", "", "spark.lakecommit.committerMemory"), ("", VARIABLE, VARIABLE)],
)
def test_memory_of_the_committer_that_is_refused(session, environment, name, text):
    with pytest.raises(InvalidInput) as caught:
        process_options({session: text}, {environment: text})
    assert str(caught.value) == f"{name} is {text!r}, but has to be a size such as 32m or 1g, from 1 KiB to 64 GiB"


def test_options_of_writes_are_none_of_the_process():
    assert process_options({"compression": "gzip", "qqqq": "x"}, {"LAKECOMMIT_COMPRESSION": "x"}) == process_options(
        {}, {}
    )


@pytest.mark.parametrize("streaming", [False, True])
def test_a_write_that_brings_one_is_told_where_it_belongs(streaming):
    with pytest.raises(InvalidInput) as caught:
        parse_options({"path": "/t", "committermemory": "1m"}, streaming=streaming)
    assert str(caught.value) == (
        "option committerMemory belongs to the process and not to a write: it holds for all tables together; leave it "
        "out here, and set spark.lakecommit.committerMemory in the session before lakecommit.register, or "
        "LAKECOMMIT_COMMITTER_MEMORY in the environment of the driver"
    )


@pytest.mark.parametrize("streaming", [False, True])
def test_a_session_that_sets_one_leaves_its_writes_alone(streaming):
    options = {"path": "/t"}
    with_setting = parse_options(options, streaming=streaming, defaults={"committerMemory": "1m"})
    assert with_setting == parse_options(options, streaming=streaming)


@pytest.mark.parametrize(("prefix", "given"), [("", {"comitterMemory": "1m"}), ("spark.lakecommit.", {})])
def test_a_misspelt_one_is_refused_with_its_name(prefix, given):
    defaults = {} if given else {"comitterMemory": "1m"}
    with pytest.raises(InvalidInput, match=f"did you mean {prefix}committerMemory?"):
        parse_options({"path": "/t", **given}, streaming=True, defaults=defaults)


def test_what_a_session_sets_too_late_is_known():
    process = process_options({"committerMemory": "1m"}, {})
    assert unheeded(process, {"committermemory": "1024k", "compression": "gzip"}) == {}
    assert unheeded(process, {"committermemory": "2m"}) == {"spark.lakecommit.committerMemory": "2m"}
    assert unheeded(process, {"committermemory": "much"}) == {"spark.lakecommit.committerMemory": "much"}
