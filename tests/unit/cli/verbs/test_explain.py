"""Every error leads to an entry of docs/when-something-is-wrong.md, and every entry is there."""

import ast
import pickle
import re
from pathlib import Path

import pytest

from lakecommit import errors
from lakecommit.cli.verbs.explain import PAGE, entries, options
from lakecommit.errors import ContradictoryState, InvalidInput, LakecommitError, StoreError
from lakecommit.options.declarations import DECLARATIONS, PROCESS_DECLARATIONS
from lakecommit.service import wire

ROOT = Path(__file__).parents[4]
SOURCES = [path for name in ("lakecommit", "state", "spark_ext") for path in (ROOT / name).rglob("*.py")]
KINDS = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, LakecommitError)]


def test_there_are_sources_and_kinds():
    assert len(SOURCES) > 100
    assert len(KINDS) > 10


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_kind_has_an_entry_of_its_own(kind):
    assert "entry" in vars(kind), f"{kind.__name__} has the entry of its base"
    assert kind.entry in entries()


def test_each_entry_that_a_message_names_is_in_the_page():
    named = {
        (path.name, keyword.value.value)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "entry" and isinstance(keyword.value, ast.Constant)
    }
    assert named
    assert [each for each in named if each[1] not in entries()] == []


def test_commands_and_links_that_the_docs_name_exist(invoke):
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        page = path.read_text()
        for name in re.findall(r"lakecommit explain ([a-z][a-z-]+)", page):
            assert name in entries(), (path.name, name)
        for link in re.findall(r"\]\((?!http)([^)]+)\)", page):
            target, _, anchor = link.partition("#")
            linked = (path.parent / target) if target else path
            assert linked.exists(), (path.name, link)
            if anchor:
                headings = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE)
                assert anchor in {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}, link


def test_entries_that_others_mention_in_the_page_are_there():
    for entry in entries().values():
        for name in re.findall(r"\*([a-z]+(?:-[a-z]+)+|sql)\*", entry.text):
            assert name in entries(), (entry.name, name)


def test_a_message_leads_to_its_entry_once_wherever_it_goes():
    error = ContradictoryState("epoch 3 is wrong; stop", entry="two-drivers")
    said = "epoch 3 is wrong; stop (more: lakecommit explain two-drivers)"
    assert str(error) == said
    assert str(ContradictoryState("epoch 3 is wrong")).endswith("(more: lakecommit explain contradictory-state)")
    assert (str(pickle.loads(pickle.dumps(error))), pickle.loads(pickle.dumps(error)).entry) == (said, "two-drivers")
    with pytest.raises(ContradictoryState) as raised:
        wire.raise_failure(wire.failure(error))
    assert str(raised.value) == said
    assert str(errors.CommitFailed(f"it failed: {error}")) == f"it failed: {said}"


def test_where_the_message_says_it_all_nothing_is_added():
    assert str(InvalidInput("correct it")) == "correct it"
    assert str(StoreError("the store is away")) == "the store is away"


def test_explain(invoke, invoke_json):
    assert "acceptTableId" in invoke("explain", "table-made-anew").stdout
    listed = invoke("explain").stdout
    assert all(name in listed for name in entries())
    assert invoke_json("explain", "sql")["name"] == "sql"
    assert "did you mean two-drivers?" in invoke("explain", "to-drivers", exit_code=1).stderr


@pytest.mark.parametrize("declared", (*DECLARATIONS, *PROCESS_DECLARATIONS), ids=lambda declared: declared.name)
def test_explain_an_option(declared, invoke_json):
    explained = invoke_json("explain", declared.name.lower())
    assert explained["name"] == declared.name
    assert declared.help in explained["text"]
    assert f"values: {declared.values}\n" in explained["text"]


def test_an_option_has_no_name_of_an_entry(invoke):
    assert not options().keys() & entries().keys()
    assert "did you mean commitWait?" in invoke("explain", "comitWait", exit_code=1).stderr


def test_the_page_comes_with_the_package():
    packaged = ROOT / "lakecommit" / PAGE
    assert packaged.read_text() == (ROOT / "docs" / PAGE).read_text()
    assert '"*.md"' in (ROOT / "pyproject.toml").read_text()
