"""Rows of `tests.behaviours`: what streams do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """`tests` are names of functions, `file::test`, or files whose every test belongs to it."""

    what: str
    here: str
    tests: tuple[str, ...]


SAME = "the same"
STREAMS = (
    Row(
        "streams: `append`, restarts, several into one table",
        SAME,
        (
            "spark/test_stream.py::test_a_restarted_query_goes_on_where_it_was",
            "spark/test_stream.py::test_two_queries_into_one_table",
            "spark/test_stream.py",
        ),
    ),
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
        "refused by `start()` if `register` was called; with Delta a continuous query starts, and then fails",
        (
            "spark/test_streams_alike.py::test_what_no_sink_can_run",
            "spark/test_driver_calls.py::test_what_cannot_run_is_refused_before_it_starts",
            "spark/test_continuous.py",
        ),
    ),
    Row(
        "one checkpoint, Delta's sink and lakecommit's in turn",
        SAME,
        (
            "spark/test_stream.py::test_a_query_goes_from_delta_to_lakecommit_and_back_with_its_checkpoint",
            "spark/test_stream.py::test_the_newest_epoch_repeated_by_the_other_sink_is_there_once",
        ),
    ),
)
