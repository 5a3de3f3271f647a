"""What Delta's writers do, what lakecommit does, and the tests that show it: `python -m tests.behaviours` is the page.

Each test runs lakecommit, nearly all of them in `make test`. With *both*, the same test runs delta-spark, too, in `make
test-all`: whatever it asserts holds for both writers. Such a test has an argument `sink`, or the mark `both_writers`.
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
            "spark/test_overwriting.py::test_change_data_feed_shows_what_was_added_and_replaced",
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
        ("spark/test_refused_alike.py::test_no_mode_at_all", "spark/test_batch.py::test_other_modes_are_a_clear_error"),
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
    Row(
        "`int` into `bigint` in a batch; an extra column without `mergeSchema`",
        "refused, as Delta does",
        ("spark/test_refused_alike.py::test_narrower_numbers_and_extra_columns",),
    ),
    Row(
        "intervals, TIME, collations, a struct without fields",
        "refused by column, as Delta does",
        ("spark/test_refused_alike.py::test_types_that_no_table_has",),
    ),
    Row("streams cast numbers that fit", SAME, ("spark/test_leniency.py::test_a_stream_casts_numbers_that_fit",)),
    Row("`void` columns", SAME, ("spark/test_leniency.py::test_columns_of_no_type_are_null",)),
    Row(
        "NOT NULL, CHECK, generated columns, defaults",
        "the same for the expressions in [expressions.md](expressions.md), else refused by name",
        (
            "interop/test_rules.py::test_what_delta_takes_is_taken_and_what_it_refuses_is_refused",
            "interop/test_rules.py::test_the_sessions_settings_count",
            "interop/test_rules.py::test_streams",
            "interop/test_expressions.py",
            "interop/test_delta_features.py::test_invariants",
        ),
    ),
    Row(
        "NOT NULL below a struct that is null",
        "violated",
        ("interop/test_rules.py::test_not_null_below_structs_that_may_be_null",),
    ),
    Row(
        "a stream out of JSON, whose columns may all be null, into NOT NULL",
        SAME,
        ("spark/test_refused_alike.py::test_a_json_stream_into_not_null",),
    ),
    Row("`char` and `varchar`", SAME, ("spark/test_lengths.py",)),
    Row(
        "VARIANT, user-defined types",
        "the same; a table that gets its first variant has to have the feature",
        ("spark/test_own_types.py",),
    ),
    Row(
        "table properties for writers: sizes, codecs, prefixes, statistics",
        "the same",
        (
            "spark/test_table_properties.py::test_statistics_of_the_columns_that_are_named",
            "spark/test_table_properties.py::test_names_of_files_are_random",
            "spark/test_table_properties.py::test_the_codec_of_a_table_comes_before_that_of_the_session",
            "spark/test_table_properties.py::test_the_size_of_files_is_the_tables",
        ),
    ),
    Row(
        "`optimizeWrite` and `autoCompact` of a table",
        "refused, unless the write switches them off",
        (
            "spark/test_table_properties.py::"
            "test_what_asks_for_a_shuffle_or_a_compaction_is_refused_unless_it_is_switched_off",
        ),
    ),
    Row(
        "symlink manifests of a table",
        "refused: they would go stale",
        ("spark/test_table_properties.py::test_symlink_manifests_are_kept_or_refused",),
    ),
    Row(
        "`dataChange=true`, and `mergeSchema`, `optimizeWrite`, `autoCompact` that are false",
        SAME,
        ("spark/test_leniency.py::test_options_that_say_what_happens_anyway",),
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
        "`clusterBy(…)` of a new table",
        "the table is clustered, as by `CREATE TABLE … CLUSTER BY`, if `register` was called, else by the option; "
        "Delta's `save()` and `start()` pass over it, and its `saveAsTable` and `toTable` refuse it",
        (
            "spark/test_driver_calls.py::test_cluster_by_counts",
            "spark/test_driver_calls.py::test_cluster_by_of_a_stream_counts",
            "spark/test_driver_calls.py::test_deltas_writer_passes_over_cluster_by",
            "spark/test_driver_calls.py::test_clustering_columns_that_a_table_cannot_have",
        ),
    ),
    Row(
        '`mode("overwrite")` of a clustered table',
        "it stays clustered; after Delta's writer it is clustered by nothing",
        ("spark/test_driver_calls.py::test_an_overwritten_table_stays_clustered",),
    ),
    Row(
        "`bucketBy(…)`",
        "refused by both, in one sentence if `register` was called",
        (
            "spark/test_driver_calls.py::test_buckets_are_refused",
            "spark/test_driver_calls.py::test_what_cannot_run_is_refused_before_it_starts",
        ),
    ),
    Row(
        "tables by name: `saveAsTable`, `toTable`",
        "of an existing table, if `register` was called; SQL, `insertInto` and `writeTo` are refused",
        ("spark/test_tables_by_name.py::test_names_are_taken_as_delta_takes_them", "spark/test_tables_by_name.py"),
    ),
    Row(
        "session settings that Delta's writers read: `autoMerge`, `userMetadata`, `maxRecordsPerFile`, the codec, "
        "`properties.defaults.*`",
        SAME,
        (
            "spark/test_evolving.py::test_a_session_that_wants_schemas_merged",
            "spark/test_table_properties.py::test_what_the_session_says_of_new_tables_and_of_files",
            "unit/options/test_session_options.py",
        ),
    ),
    Row(
        "the session's `autoMerge` without `register`",
        "batch appends end in an error of Spark's own ([schema-mismatch](when-something-is-wrong.md#schema-mismatch))",
        (
            "spark/test_drivers.py::"
            "test_without_register_a_session_that_wants_schemas_merged_has_to_say_so_in_each_write",
        ),
    ),
    Row(
        "`dbfs:/`, `~` and similar locations",
        "refused, with what was probably meant; `~` is the home directory",
        ("spark/test_refused_alike.py::test_locations_of_stores_that_nobody_knows", "unit/storage/test_location.py"),
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
        "streams: `once`, `availableNow`, `processingTime`; queries that keep state",
        SAME,
        ("spark/test_streams_alike.py::test_every_trigger_and_a_query_that_keeps_state",),
    ),
    Row(
        "DELETE, UPDATE, MERGE and OPTIMIZE beside a stream",
        SAME,
        (
            "spark/test_streams_alike.py::test_rows_change_and_files_are_compacted_beside_a_stream",
            "unit/committing/test_other_writers.py",
        ),
    ),
    Row(
        "change data feed of appends and overwrites",
        SAME,
        (
            "spark/test_overwriting.py::test_change_data_feed_shows_what_was_added_and_replaced",
            "interop/test_delta_features.py::test_change_data_feed_shows_the_append",
        ),
    ),
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
        "eight threads that create a table and append to it at once",
        "all of them do; with Delta some have to try again",
        ("spark/test_driver_calls.py::test_threads_that_create_a_table_and_append_to_it_at_once",),
    ),
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
    return {node.name: runs_both(node) for node in tests}


def runs_both(test: ast.FunctionDef) -> bool:
    marked = any(ast.unparse(each) == "pytest.mark.both_writers" for each in test.decorator_list)
    return marked or any(each.arg == "sink" for each in test.args.args)


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
        "delta-spark in the same test, too (`make test-all`), so that what they assert holds for both writers, or says",
        "where they differ.",
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
