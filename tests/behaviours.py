"""What Delta's writers do, what lakecommit does, and the tests that show it: `python -m tests.behaviours` is the page.

Each test runs lakecommit in `make test`. With *both*, the same test runs delta-spark, too, in `make test-all`: whatever
it asserts holds for both writers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent


@dataclass(frozen=True)
class Row:
    """`tests` are names of functions, `file::test`, or files whose every test belongs to it."""

    what: str
    here: str
    tests: tuple[str, ...]


SAME = "the same"
ROWS = (
    Row(
        "append by path; columns and nested fields in any order", SAME, ("spark/test_batch.py", "interop/test_types.py")
    ),
    Row(
        "odd values, names, paths and partition values",
        SAME,
        ("interop/test_types.py", "interop/test_delta_features.py"),
    ),
    Row(
        "filters find the same rows as in a table of delta-spark (NaN, infinities, nulls, far dates)",
        SAME,
        ("interop/test_filters.py", "interop/test_types.py", "interop/test_deltalake_filters.py"),
    ),
    Row(
        "history: operation, parameters, metrics",
        "the same, and a version 0 for the creation; no version for an epoch without rows",
        ("spark/test_batch.py::test_history_shows_what_deltas_own_writers_show", "spark/test_empty_epochs.py"),
    ),
    Row(
        "`isBlindAppend` of a write that reads its own target",
        SAME,
        (
            "spark/test_batch.py::test_a_write_that_reads_its_own_target_is_no_blind_append",
            "spark/test_changed_tables.py::test_a_stream_that_reads_its_own_target_makes_no_blind_appends",
        ),
    ),
    Row(
        "`txnAppId` and `txnVersion`, as options and as session settings",
        SAME,
        (
            "spark/test_batch.py::test_a_repeated_txn_version_writes_nothing",
            "spark/test_batch.py::test_the_transaction_that_deltas_session_settings_name",
            "spark/test_overwriting.py::test_a_repeated_txn_version_replaces_nothing",
        ),
    ),
    Row(
        '`mode("overwrite")`',
        SAME,
        (
            "spark/test_overwriting.py::test_the_whole_table",
            "spark/test_overwriting.py::test_deletion_vectors_are_removed_with_their_files",
            "spark/test_overwriting.py::test_a_table_that_only_grows_is_refused",
            "spark/test_overwriting.py::test_change_data_feed_shows_what_was_replaced",
        ),
    ),
    Row(
        "`partitionOverwriteMode=dynamic`",
        SAME,
        ("spark/test_overwriting.py::test_the_partitions_that_are_written_to",),
    ),
    Row(
        "`replaceWhere`",
        "on partition columns; other conditions are refused",
        ("spark/test_overwriting.py::test_the_partitions_that_match_a_condition",),
    ),
    Row(
        "`overwriteSchema`",
        SAME,
        (
            "spark/test_overwriting.py::test_with_another_schema_and_other_partitions",
            "spark/test_overwriting.py::test_columns_that_stay_keep_their_ids",
        ),
    ),
    Row(
        "overwriting a table that the write reads",
        "the same if `register` was called",
        ("spark/test_reading_what_is_replaced.py",),
    ),
    Row(
        "default mode, `error`, `ignore`",
        "Spark refuses them for a Python data source",
        ("spark/test_batch.py::test_other_modes_are_a_clear_error",),
    ),
    Row(
        "`mergeSchema`, and the session's `autoMerge`", "the same, in a version of its own", ("spark/test_evolving.py",)
    ),
    Row(
        "a column of the table is not in the data; somebody adds one under a stream",
        SAME,
        ("spark/test_changed_tables.py::test_a_column_is_added",),
    ),
    Row(
        "somebody renames a column under a stream",
        "refused at once",
        ("spark/test_changed_tables.py::test_a_column_is_renamed",),
    ),
    Row(
        "names in another case",
        "the same, unless the session is case sensitive",
        (
            "spark/test_leniency.py::test_names_in_any_case",
            "spark/test_leniency.py::test_a_session_that_is_case_sensitive",
            "spark/test_leniency.py::test_partition_columns_in_any_case",
        ),
    ),
    Row(
        "smaller whole numbers; what does not fit is refused by column",
        SAME,
        ("spark/test_leniency.py::test_smaller_whole_numbers",),
    ),
    Row("streams cast numbers that fit", SAME, ("spark/test_leniency.py::test_a_stream_casts_numbers_that_fit",)),
    Row("`void` columns", SAME, ("spark/test_leniency.py::test_columns_of_no_type_are_null",)),
    Row(
        "NOT NULL, CHECK, generated columns, defaults",
        "the same for the expressions in [expressions.md](expressions.md), else refused by name",
        ("interop/test_rules.py", "interop/test_expressions.py", "interop/test_delta_features.py::test_invariants"),
    ),
    Row("`char` and `varchar`", SAME, ("spark/test_lengths.py",)),
    Row(
        "VARIANT, user-defined types",
        "the same; a table that gets its first variant has to have the feature",
        ("spark/test_own_types.py",),
    ),
    Row(
        "table properties for writers: sizes, codecs, prefixes, statistics",
        "the same; those that ask for a shuffle or a compaction are refused",
        ("spark/test_table_properties.py",),
    ),
    Row(
        "table features",
        "honoured, or refused by name ([delta-features.md](delta-features.md))",
        ("interop/test_delta_features.py::test_supported", "interop/test_delta_features.py::test_refused"),
    ),
    Row(
        "`partitionBy(…)` of a new table",
        "the same if `register` was called, else the option",
        ("spark/test_driver_calls.py::test_partition_by_counts",),
    ),
    Row(
        "tables by name: `saveAsTable`, `toTable`",
        "of an existing table, if `register` was called; SQL, `insertInto` and `writeTo` are refused",
        ("spark/test_tables_by_name.py",),
    ),
    Row(
        "session settings that Delta's writers read",
        "count, or are refused",
        (
            "spark/test_batch.py::test_session_settings_are_defaults",
            "interop/test_rules.py::test_the_sessions_settings_count",
        ),
    ),
    Row(
        "Hadoop's S3 settings of the session",
        "count where they are plain, else the message names the option",
        ("spark/test_hadoop_settings.py",),
    ),
    Row(
        "an unknown option",
        "refused",
        (
            "spark/test_batch.py::test_bad_options_are_refused_before_anything_is_written",
            "spark/test_failures.py::test_a_misspelt_option",
        ),
    ),
    Row("streams: `append`, restarts, several into one table", SAME, ("spark/test_stream.py",)),
    Row(
        'streams: `outputMode("complete")`',
        SAME,
        ("spark/test_stream.py::test_each_epoch_of_a_complete_stream_replaces_the_table",),
    ),
    Row(
        "streams: `update`, `Trigger.Continuous`, no path",
        "refused by `start()` if `register` was called",
        ("spark/test_driver_calls.py::test_what_cannot_run_is_refused_before_it_starts", "spark/test_continuous.py"),
    ),
    Row(
        "one checkpoint, Delta's sink and lakecommit's in turn",
        SAME,
        (
            "spark/test_stream.py::test_a_query_goes_from_delta_to_lakecommit_and_back_with_its_checkpoint",
            "spark/test_stream.py::test_the_newest_epoch_repeated_by_the_other_sink_is_there_once",
        ),
    ),
    Row("writing from threads", SAME, ("spark/test_driver_calls.py::test_threads_write_as_they_do_with_delta",)),
    Row(
        "checkpoints of the log, and its clean-up",
        "by a process of its own ([log-upkeep.md](log-upkeep.md))",
        ("spark/test_log_upkeep.py", "interop/test_checkpoints.py", "interop/test_checkpoints_with_deltalake.py"),
    ),
    Row(
        "a commit that is refused says why in the first line",
        "always",
        (
            "spark/test_failures.py::test_a_commit_that_no_longer_fits",
            "interop/test_rules.py::test_the_reason_is_the_first_line",
        ),
    ),
    Row(
        "delta-spark beside it on S3, which puts versions without a condition",
        "noticed and made up for",
        ("process/test_overwriting_writers.py",),
    ),
)


def functions_of(file: str) -> dict[str, bool]:
    """The tests in a file, and whether each of them runs both writers."""
    tree = ast.parse((ROOT / file).read_text())
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return {node.name: "sink" in (each.arg for each in node.args.args) for node in tests}


def shown_by(row: Row) -> Iterator[tuple[str, bool]]:
    """The names of a row's tests, and whether each runs both writers. Raises `KeyError` for one that is not there."""
    for test in row.tests:
        file, _, name = test.partition("::")
        found = functions_of(file)
        yield f"`{test}`", found[name] if name else all(found.values())


def page() -> str:
    lines = [
        "# What Delta's writers do, and what lakecommit does",
        "",
        "Written by `make docs` from `tests/behaviours.py`. Each row is shown by tests. Those with *both* run",
        "delta-spark in the same test, too (`make test-all`), so that what they assert holds for both writers.",
        "",
        "| what a user does | lakecommit | shown by |",
        "| --- | --- | --- |",
    ]
    for row in ROWS:
        shown = "; ".join(f"{name}{' (both)' if both else ''}" for name, both in shown_by(row))
        lines.append(f"| {row.what} | {row.here} | {shown} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
