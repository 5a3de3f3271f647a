"""What a session's settings say about writes."""

from __future__ import annotations

import pytest

from lakecommit.errors import InvalidInput
from lakecommit.options.parsing import parse_options
from lakecommit.options.session import session_options

AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"


def parsed(settings, *, streaming=False, **options):
    return parse_options({"path": "/t", **options}, streaming=streaming, defaults=session_options(settings))


def test_settings_that_deltas_writers_read_count():
    found = parsed(
        {
            AUTO_MERGE: "true",
            "spark.databricks.delta.commitInfo.userMetadata": "nightly",
            "spark.databricks.delta.properties.defaults.appendOnly": "true",
            "spark.sql.sources.partitionOverwriteMode": "DYNAMIC",
            "spark.sql.files.maxRecordsPerFile": "70",
            "spark.sql.parquet.compression.codec": "gzip",
            "spark.sql.shuffle.partitions": "7",
        }
    )
    assert (found.merge_schema, found.user_metadata, found.dynamic_overwrite) == (True, "nightly", True)
    assert (found.max_records_per_file, found.compression) == (70, "gzip")
    assert found.table_properties == {"delta.appendonly": "true"}


def test_what_is_for_batch_writes_is_passed_over_by_streams():
    found = parsed({"spark.sql.sources.partitionOverwriteMode": "dynamic", AUTO_MERGE: "true"}, streaming=True)
    assert found.merge_schema and not found.dynamic_overwrite


def test_ours_come_before_deltas_and_the_writes_own_before_both():
    settings = {"spark.sql.parquet.compression.codec": "gzip", "spark.lakecommit.COMPRESSION": "lz4"}
    assert parsed(settings).compression == "lz4"
    assert parsed(settings, compression="snappy").compression == "snappy"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"spark.sql.parquet.compression.codec": "brotli"}, "compression is 'brotli', but has to be zstd"),
        ({"spark.databricks.delta.optimizeWrite.enabled": "true"}, r"optimizeWrite is not available.*df.repartition"),
        ({"spark.databricks.delta.autoCompact.enabled": "auto"}, "autoCompact is not available.*OPTIMIZE"),
    ],
)
def test_what_cannot_count_is_refused(settings, said):
    with pytest.raises(InvalidInput, match=said):
        parsed(settings)


def test_values_that_say_what_happens_anyway_are_accepted():
    parsed({"spark.databricks.delta.optimizeWrite.enabled": "false"}, dataChange="true", mergeSchema="false")
    parsed({}, streaming=True, optimizeWrite="False", autoCompact="false")
