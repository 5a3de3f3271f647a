"""What a session's settings say about writes."""

from __future__ import annotations

import pytest

from lakecommit.errors import InvalidInput
from lakecommit.formats.plan import TableOption
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


@pytest.mark.parametrize("asked", [{"spark.lakecommit.TableFormat": "parquet"}, {}], ids=["session", "write"])
def test_what_one_formats_writers_read_is_its_own(asked):
    """Whoever writes a Parquet directory has asked Delta for nothing, and the other way round."""
    options = {} if asked else {"tableformat": "parquet"}
    settings = {
        AUTO_MERGE: "true",
        "spark.databricks.delta.commitInfo.userMetadata": "nightly",
        "spark.databricks.delta.optimizeWrite.enabled": "true",
        "spark.sql.files.maxRecordsPerFile": "70",
        "spark.sql.streaming.fileSink.log.compactInterval": "7",
    }
    found = parsed(settings | asked, **options)
    assert (found.merge_schema, found.user_metadata, found.max_records_per_file) == (False, None, 70)
    assert parsed(settings | asked, streaming=True, **options).compact_interval == 7
    assert parsed(settings | asked, mergeSchema="true", **options).merge_schema
    assert parsed(settings | asked | {"spark.lakecommit.mergeSchema": "true"}, **options).merge_schema
    del settings["spark.databricks.delta.optimizeWrite.enabled"]
    settings["spark.sql.streaming.fileSink.log.compactInterval"] = "often"
    assert parsed(settings, streaming=True).merge_schema
    with pytest.raises(InvalidInput, match="compactInterval is 'often'"):
        parsed(settings | asked, streaming=True, **options)
    with pytest.raises(InvalidInput, match="tableFormat is 'orc', but has to be delta, parquet"):
        parsed(settings, tableFormat="orc")


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


def asked(option: str, value: str, settings=None, **options):
    defaults, table = session_options(settings or {}), [TableOption(option, value, "the.property")]
    return parse_options({"path": "/t", **options}, streaming=True, defaults=defaults, table=table)


def test_what_the_table_asks_for_comes_after_the_writes_own_and_before_the_session():
    session = {"spark.sql.parquet.compression.codec": "gzip", "spark.lakecommit.targetFileSize": "2m"}
    assert asked("compression", "SNAPPY", session).compression == "snappy"
    assert asked("targetFileSize", "256mb", session).target_file_size_bytes == 256 * 2**20
    assert asked("compression", "snappy", session).target_file_size_bytes == 2 * 2**20
    assert asked("compression", "snappy", session, COMPRESSION="none").compression == "none"


def test_what_the_table_asks_for_and_cannot_get_is_refused_by_its_property():
    with pytest.raises(InvalidInput, match=r"property the.property is 'brotli', but option compression.*zstd, snappy"):
        asked("compression", "brotli")
    assert asked("compression", "brotli", compression="zstd").compression == "zstd"
    with pytest.raises(InvalidInput, match=r"the table has the property the.property, and option optimizeWrite is not"):
        asked("optimizeWrite", "true")
    asked("optimizeWrite", "False")


def test_what_is_not_available_may_be_switched_off_by_whoever_comes_first():
    asked("optimizeWrite", "true", {"spark.databricks.delta.optimizeWrite.enabled": "false"})
    asked("autoCompact", "true", autoCompact="false")
    parsed({"spark.databricks.delta.autoCompact.enabled": "true"}, autoCompact="false")
    with pytest.raises(InvalidInput, match="option optimizeWrite is not available"):
        parsed({"spark.databricks.delta.optimizeWrite.enabled": "false"}, optimizeWrite="true")
