"""What Delta's writers do, what lakecommit does, and the tests that show it: `python -m tests.behaviours` is the page.

Each test runs lakecommit, nearly all of them in `make test`. With *both*, the same test runs delta-spark, too, in `make
test-all`: whatever it asserts holds for both writers, or says what each of them does, so that a new delta-spark that
does something else is noticed. Such a test has an argument `sink`, or the mark `both_writers`; each row has one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from .behaviours_of_streams import SAME, STREAMS, Row

ROOT = Path(__file__).parent


ROWS = (
    Row(
        "append by path; columns and nested fields in any order, and some left out",
        SAME,
        (
            "spark/test_appends_alike.py::test_columns_and_nested_fields_in_any_order_and_some_left_out",
            "spark/test_batch.py",
        ),
    ),
    Row(
        "odd values, names, paths and partition values",
        SAME,
        (
            "spark/test_appends_alike.py::test_odd_names_of_columns_and_locations",
            "interop/test_types.py::test_delta_spark_reads_what_was_written",
            "interop/test_types.py::test_partition_values_round_trip",
            "interop/test_types.py::test_bounds_that_delta_spark_answers_from_statistics",
            "interop/test_delta_features.py",
        ),
    ),
    Row(
        "timestamps that are partition values, written in sessions of several time zones",
        SAME,
        ("spark/test_appends_alike.py::test_moments_that_are_partition_values_are_the_same_in_every_zone",),
    ),
    Row(
        "filters find the same rows as in a table of delta-spark (NaN, infinities, nulls, far dates)",
        SAME,
        (
            "interop/test_filters.py",
            "interop/test_types.py::test_filters_find_nan_as_in_a_table_of_delta_spark",
            "interop/test_deltalake_filters.py",
        ),
    ),
    Row(
        "history: operation, parameters, metrics",
        "the same, and a version 0 for the creation; a version for a batch without rows, which Delta leaves out, and "
        "none for an epoch without rows, which Delta makes",
        (
            "spark/test_appends_alike.py::test_history",
            "spark/test_empty_epochs.py::test_epochs_without_rows_in_the_history",
            "spark/test_empty_epochs.py",
        ),
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
        "on partition columns; other conditions are refused, which Delta takes",
        (
            "spark/test_overwriting.py::test_the_partitions_that_match_a_condition",
            "spark/test_overwriting.py::test_a_condition_on_another_column",
        ),
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
        (
            "spark/test_reading_what_is_replaced.py::test_an_append_before_the_write_is_called_is_read",
            "spark/test_reading_what_is_replaced.py",
        ),
    ),
    Row(
        "default mode, `error`, `ignore`",
        "Spark refuses them for a Python data source",
        ("spark/test_refused_alike.py::test_modes_that_ask_whether_there_is_a_table",),
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
        "the same; sizes and codecs, too, which Delta's open-source writer passes over",
        (
            "spark/test_table_properties.py::test_statistics_of_the_columns_that_are_named",
            "spark/test_table_properties.py::test_names_of_files_are_random",
            "spark/test_table_properties.py::test_the_codec_of_a_table_comes_before_that_of_the_session",
            "spark/test_table_properties.py::test_the_size_of_files_is_the_tables",
        ),
    ),
    Row(
        "`optimizeWrite` and `autoCompact` of a table",
        "refused, unless the write switches them off; Delta takes them",
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
        (
            "interop/test_delta_features.py::test_supported",
            "interop/test_delta_features.py::test_refused",
            "interop/test_delta_features.py::test_what_is_refused_here_delta_spark_writes",
        ),
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
        "a new table by name: `saveAsTable`, `toTable`, `writeTo(…).create()`, CREATE TABLE … AS SELECT",
        "refused in one sentence, with nothing made, if `register` was called; Delta makes it",
        ("spark/test_names_alike.py::test_new_tables",),
    ),
    Row(
        "`insertInto`, `writeTo(…).append()`, SQL INSERT and SELECT by path, CREATE TABLE … OPTIONS (path …)",
        "refused in one sentence if `register` was called; Delta does it",
        ("spark/test_names_alike.py::test_a_table_that_is_there",),
    ),
    Row(
        "session settings that Delta's writers read: `autoMerge`, `userMetadata`, `maxRecordsPerFile`, the codec, "
        "`properties.defaults.*`",
        SAME,
        (
            "spark/test_evolving.py::test_a_session_that_wants_schemas_merged",
            "spark/test_table_properties.py::test_what_the_session_says_of_new_tables_and_of_files",
            "spark/test_streams_alike.py::test_what_the_session_says",
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
        ("spark/test_refused_alike.py::test_locations_that_cannot_be_meant", "unit/storage/test_location.py"),
    ),
    Row(
        "Hadoop's S3 settings of the session",
        "count where they are plain, else the message names the option",
        (
            "process/test_hadoops_settings.py::test_the_same_settings_suffice_for_both",
            "spark/test_hadoop_settings.py::test_the_sessions_own_settings_of_s3_suffice",
        ),
    ),
    Row(
        "Hadoop's settings (`fs.…`) as options of a write",
        "those of S3 that are plain count, others are refused with the option that takes their place; with Delta all "
        "count",
        ("spark/test_hadoop_settings.py::test_hadoops_settings_as_options_of_a_write",),
    ),
    Row(
        "an unknown option, or a property of a new table",
        "refused; Delta refuses the property, and passes over the option",
        (
            "spark/test_appends_alike.py::test_options_that_nobody_knows",
            "spark/test_batch.py::test_bad_options_are_refused_before_anything_is_written",
            "spark/test_failures.py::test_a_misspelt_option",
        ),
    ),
    *STREAMS,
    Row("writing from threads", SAME, ("spark/test_driver_calls.py::test_threads_write_as_they_do_with_delta",)),
    Row(
        "eight threads that create a table and append to it at once",
        "all of them do; with Delta some have to try again",
        ("spark/test_driver_calls.py::test_threads_that_create_a_table_and_append_to_it_at_once",),
    ),
    Row(
        "checkpoints of the log, and its clean-up",
        "by a process of its own ([log-upkeep.md](log-upkeep.md)), every hundred versions if the table does not say; "
        "with Delta every ten",
        (
            "spark/test_log_upkeep.py::test_the_versions_that_have_checkpoints_and_the_table_opens_from_the_newest",
            "spark/test_log_upkeep.py::test_what_has_expired_is_cleaned_up_with_a_checkpoint",
            "interop/test_checkpoints.py",
            "interop/test_checkpoints_with_deltalake.py",
        ),
    ),
    Row(
        "a write that is refused says why in the first line",
        "always; with Delta a batch write does in the second, after one of py4j's",
        (
            "spark/test_reasons_alike.py",
            "spark/test_failures.py::test_a_commit_that_no_longer_fits",
            "interop/test_rules.py::test_the_reason_is_the_first_line",
        ),
    ),
    Row(
        "delta-spark beside it on S3, which puts versions without a condition",
        "noticed and made up for",
        ("process/test_overwriting_writers.py::test_delta_spark_itself", "process/test_overwriting_writers.py"),
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
