"""Delta's words stand in its own package: whoever uses a table knows the verbs of `formats/base.py` alone."""

from __future__ import annotations

import ast
import re
from itertools import product
from pathlib import Path

import pytest

from .test_rooms import GRAPH, MODULES

FORMAT = "lakecommit.formats.delta"
REGISTRY = "lakecommit.formats.registry"
# What is written into a Delta log, and what a log is called: in any text, docstrings included.
WORDS = re.compile(
    r"\b(STREAMING UPDATE|WRITE|FENCE|VACUUM START|VACUUM END|VACUUM|CREATE TABLE|operationParameters|operationMetrics|"
    r"isBlindAppend|commitInfo|metaData|txn|txnId|lastUpdated|_delta_log|_change_data|\w+RetentionDuration|"
    r"columnMapping|deletionVector|numRecords|minValues|maxValues|nullCount)\b"
)
NAMES = frozenset({"txns", "txn_id", "txn_times", "commit_info", "operation_parameters", "is_blind_append"})
STATISTICS = ("numRecords", "minValues", "maxValues", "nullCount")
# Where a word is not the log's.
ALLOWED = {
    # What `lakecommit history --json` calls it, which programs read.
    ("lakecommit.cli.verbs.history", "operationParameters"),
    ("lakecommit.cli.verbs.history", "txnId"),
    # A parameter and a field that hold the options `txnAppId` and `txnVersion`.
    ("lakecommit.releasing.batch_versions", "txn"),
    ("lakecommit.service.dispatch", "txn"),
    # SQL of databases of their own.
    ("lakecommit.vacuuming.candidates", "CREATE TABLE"),
    ("lakecommit.reading.planning.plan", "CREATE TABLE"),
    # SQL that a message asks for.
    ("lakecommit.spark_ext.tables_by_name", "CREATE TABLE"),
    # What another engine's command does to files, said to people.
    ("lakecommit.cli.verbs.status.health", "VACUUM"),
    ("lakecommit.formats.uris", "VACUUM"),
    ("lakecommit.listening.partition_done", "VACUUM"),
    ("lakecommit.restarting.presence", "VACUUM"),
    # Metadata of fields, as Spark's schemas have it: in this form schemas travel in plans of all formats.
    ("lakecommit.schema", "columnMapping"),
    ("lakecommit.writing.columns", "columnMapping"),
    # A property that a message names.
    ("lakecommit.reading.conversion", "columnMapping"),
    # Statistics of a file are JSON in the seam itself, which is never taken apart on its way from or into a log:
    # `ReadFile.stats` and what tasks report. Who writes it and who reads it name its parts.
    *product(("lakecommit.formats.reading", "lakecommit.reading.skipping", "lakecommit.writing.stats"), STATISTICS),
}


def is_the_formats(module: str) -> bool:
    return module == FORMAT or module.startswith(f"{FORMAT}.")


def words_of(path: Path) -> set[str]:
    """The words of Delta's log in texts, and names that only its log has."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else node.value.decode(errors="replace")
            found.update(WORDS.findall(text))
        for field in ("id", "attr", "arg", "name"):
            name = getattr(node, field, None)
            if isinstance(name, str) and name in NAMES:
                found.add(name)
    return found


def test_only_the_format_imports_its_own_modules():
    """The registry names the package, and imports it when it is asked for."""
    importing = {name for name, imported in GRAPH.items() if any(map(is_the_formats, imported))}
    assert {name for name in importing if not is_the_formats(name)} == set()
    naming = {name for name, path in MODULES.items() if re.search(re.escape(FORMAT), path.read_text())}
    assert {name for name in naming if not is_the_formats(name)} == {REGISTRY}


def test_the_words_of_a_delta_log_are_in_no_other_package():
    found = {
        (module, word) for module, path in MODULES.items() if not is_the_formats(module) for word in words_of(path)
    }
    assert sorted(found - ALLOWED) == []
    assert sorted(ALLOWED - found) == [], "what is allowed is there"


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ('x = {"operation": "STREAMING UPDATE"}', "STREAMING UPDATE"),
        ("b'\"txn\"' in line", "txn"),
        ("state.txns", "txns"),
        ('operation.startswith("VACUUM")', "VACUUM"),
        ('directory == "_change_data"', "_change_data"),
        ('"delta.columnMapping.id"', "columnMapping"),
        ('said.get("numRecords")', "numRecords"),
        ("f(commit_info=1)", "commit_info"),
        ('f"_delta_log/{number}"', "_delta_log"),
        ('"delta.setTransactionRetentionDuration"', "setTransactionRetentionDuration"),
    ],
)
def test_a_word_is_seen(line, word, tmp_path):
    (tmp_path / "module.py").write_text(line)
    assert words_of(tmp_path / "module.py") == {word}
