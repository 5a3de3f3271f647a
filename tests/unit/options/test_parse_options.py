"""Options as Spark hands them over: case, defaults, bounds, contradictions, misspellings."""

import pickle

import pytest

from lakecommit.errors import InvalidInput
from lakecommit.options.declarations import DECLARATIONS, LATER, SPARK
from lakecommit.options.parsing import parse_options

PATH = {"path": "s3://lake/orders"}


def parse(streaming=False, defaults=None, **options):
    return parse_options(PATH | options, streaming=streaming, defaults=defaults or {})


def refusal(streaming=False, defaults=None, **options):
    with pytest.raises(InvalidInput) as caught:
        parse(streaming, defaults, **options)
    return str(caught.value)


def test_defaults():
    options = parse()
    assert options.path == "s3://lake/orders"
    assert options.partition_by is None
    assert options.table_format == "delta"
    assert options.target_file_size_bytes == 128 * 1024**2
    assert options.max_records_per_file == 0
    assert options.compression == "zstd"
    assert (options.txn_app_id, options.txn_version, options.user_metadata) == (None, None, None)
    assert (options.table_properties, options.store_options) == ({}, {})


@pytest.mark.parametrize("streaming", [False, True])
def test_defaults_of_pacing_and_event_times(streaming):
    options = parse(streaming)
    assert (options.commit_wait_ms, options.backlog_interval_ms) == (30_000, 30_000)
    assert (options.max_pending_epochs, options.max_pending_files) == (1000, 100_000)
    assert options.max_pending_bytes == 100 * 1024**3
    assert (options.event_time_column, options.watermark_delay_ms) == (None, 0)


@pytest.mark.parametrize("name", ["maxRecordsPerFile", "maxrecordsperfile", "MAXRECORDSPERFILE"])
def test_names_match_in_any_case(name):
    assert parse(**{name: "7"}).max_records_per_file == 7


def test_messages_use_the_declared_name():
    assert "option maxRecordsPerFile is 'x'" in refusal(maxrecordsperfile="x")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1048576", 1024**2),
        ("128m", 128 * 1024**2),
        ("128MB", 128 * 1024**2),
        ("128MiB", 128 * 1024**2),
        (" 64 mib ", 64 * 1024**2),
        ("2048k", 2 * 1024**2),
        ("4g", 4 * 1024**3),
    ],
)
def test_sizes(text, size):
    assert parse(targetFileSize=text).target_file_size_bytes == size


@pytest.mark.parametrize("text", ["", "0", "-1", "1023k", "4097m", "1.5g", "128 megs", "m", "1e9", "٣m"])
def test_sizes_that_are_refused(text):
    assert "from 1 MiB to 4 GiB" in refusal(targetFileSize=text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("region", ("region",)),
        ("region,day", ("region", "day")),
        (" region , day ", ("region", "day")),
        ("`a,b`,c", ("a,b", "c")),
        ("order day,`tick``s`", ("order day", "tick`s")),
        ("` padded `", (" padded ",)),
    ],
)
def test_partition_columns(text, names):
    assert parse(partitionBy=text).partition_by == names


@pytest.mark.parametrize("text", ["", " ", "a,", ",a", "a,,b", "`a", "a`b", "``", "`a`b", "day,Day"])
def test_partition_columns_that_are_refused(text):
    assert "column names separated by commas" in refusal(partitionBy=text)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("region", (("region",),)),
        (" a , s.x ", (("a",), ("s", "x"))),
        ("s . t.x,`s.x`", (("s", "t", "x"), ("s.x",))),
        ("`a,b`.`tick``s`.order day", (("a,b", "tick`s", "order day"),)),
    ],
)
def test_clustering_columns(text, paths):
    assert parse(clusterBy=text).cluster_by == paths
    assert parse(streaming=True, clusterBy=text).cluster_by == paths


@pytest.mark.parametrize("text", ["", " ", "a,", ",a", "a..b", ".a", "a.", "`a", "a`b", "s.x,S.X", "a.``"])
def test_clustering_columns_that_are_refused(text):
    assert "column names separated by commas, each once; a dot leads" in refusal(clusterBy=text)


def test_parquet_directories_are_not_clustered():
    message = "option clusterBy is for tableFormat=delta, and tableFormat is parquet; leave it out"
    assert message in refusal(clusterBy="a", tableFormat="parquet")
    # What a session says is for those of its tables that can be.
    parse_options({"path": "/t", "tableFormat": "parquet"}, streaming=False, defaults={"clusterBy": "a"})


@pytest.mark.parametrize(
    ("text", "codec"),
    [("ZSTD", "zstd"), ("snappy", "snappy"), ("gzip", "gzip"), ("lz4_raw", "lz4"), ("uncompressed", "none")],
)
def test_compression(text, codec):
    assert parse(compression=text).compression == codec


@pytest.mark.parametrize("text", ["brotli", "lzo", "", "zstd1"])
def test_compression_that_is_refused(text):
    assert "has to be zstd, snappy" in refusal(compression=text)


@pytest.mark.parametrize(("text", "limit"), [("0", 0), ("-5", 0), ("1000", 1000)])
def test_record_limit_counts_as_in_spark(text, limit):
    assert parse(maxRecordsPerFile=text).max_records_per_file == limit


@pytest.mark.parametrize("text", ["1_000", "1.0", "many", ""])
def test_record_limit_that_is_refused(text):
    assert "a number of rows" in refusal(maxRecordsPerFile=text)


def test_transactions():
    options = parse(txnAppId="etl", txnVersion="9223372036854775807")
    assert (options.txn_app_id, options.txn_version) == ("etl", 2**63 - 1)


@pytest.mark.parametrize("version", ["-1", "9223372036854775808", "1.5", ""])
def test_transaction_versions_that_are_refused(version):
    assert "option txnVersion" in refusal(txnAppId="etl", txnVersion=version)


def test_a_transaction_needs_both_halves():
    assert "give txnVersion, too" in refusal(txnAppId="etl")
    assert "give txnAppId, too" in refusal(txnVersion="1")


def test_a_transaction_cannot_take_the_name_of_an_own_mark():
    assert "does not begin with lakecommit:" in refusal(txnAppId="lakecommit:etl", txnVersion="1")


def test_a_stream_has_no_transaction_options():
    assert "txnAppId is for batch writes" in refusal(streaming=True, txnAppId="etl", txnVersion="1")


def test_session_defaults_stand_behind_options():
    defaults = {"compression": "gzip", "targetfilesize": "2m"}
    options = parse(defaults=defaults, compression="snappy")
    assert (options.compression, options.target_file_size_bytes) == ("snappy", 2 * 1024**2)


def test_session_defaults_for_batch_writes_leave_streams_alone():
    assert parse(streaming=True, defaults={"txnAppId": "etl", "txnVersion": "1"}).txn_app_id is None


def test_session_defaults_are_checked_and_named_in_full():
    assert "did you mean spark.lakecommit.compression?" in refusal(defaults={"compresion": "gzip"})
    assert "spark.lakecommit.path" in refusal(defaults={"path": "/t"})
    assert "spark.lakecommit.table" in refusal(defaults={"table": "t"})


def test_store_and_table_options_lose_no_value():
    options = parse(**{"STORE.Region": "eu-west-1", "delta.appendonly": "true"}, defaults={"store.region": "x"})
    assert options.store_options == {"region": "eu-west-1"}
    assert options.table_properties == {"delta.appendonly": "true"}


def test_a_misspelt_table_property_is_refused():
    assert "delta.appendOnly" in refusal(**{"delta.apendonly": "true"})


def test_repr_has_no_store_option():
    options = parse(**{"store.secret_access_key": "hunter2"})
    assert "hunter2" not in repr(options)
    assert "hunter2" not in str(options)
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize("name", SPARK)
def test_options_of_spark_pass(name):
    assert parse(streaming=True, **{name.lower(): "x"}) == parse(streaming=True)


@pytest.mark.parametrize("name", LATER)
def test_options_that_are_not_there_yet_are_refused_by_name(name):
    assert f"option {name} is not available in this version" in refusal(**{name.lower(): "x"})


@pytest.mark.parametrize(
    ("given", "meant"),
    [("partitionby2", "partitionBy"), ("targetSize", "targetFileSize"), ("mergeshema", "mergeSchema")],
)
def test_a_misspelt_option_is_refused_with_the_nearest_name(given, meant):
    assert f"did you mean {meant}?" in refusal(**{given: "x"})


def test_an_option_like_no_other_is_refused_with_all_names():
    message = refusal(qqqq="x")
    assert all(each.name in message for each in DECLARATIONS)


@pytest.mark.parametrize("prefix", ["store.", "delta."])
def test_a_prefix_alone_is_no_option(prefix):
    assert "unknown" in refusal(**{prefix: "x"})


def test_one_option_in_two_spellings_is_refused_unless_they_agree():
    assert "given twice" in refusal(compression="gzip", Compression="zstd")
    assert parse(compression="gzip", Compression="gzip").compression == "gzip"


def test_a_write_without_a_table_is_refused():
    with pytest.raises(InvalidInput, match="names no table"):
        parse_options({}, streaming=False)
    assert "option path" in refusal(path=" ")


@pytest.mark.parametrize("streaming", [False, True])
def test_a_name_that_nobody_has_looked_up_is_refused(streaming):
    with pytest.raises(InvalidInput, match=r"option table .*; call lakecommit\.register\(spark\) first, or give the"):
        parse_options({"table": "db.orders"}, streaming=streaming)
    assert parse(streaming, table="db.orders").path == PATH["path"]


APP, VERSION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"


def test_deltas_own_session_settings_name_the_transaction():
    session = {APP: "etl", VERSION: "7"}
    options = parse(defaults=session)
    assert (options.txn_app_id, options.txn_version) == ("etl", 7)
    # A stream has its own progress, and whoever names a transaction nearer to the write means that one, whole.
    assert parse(streaming=True, defaults=session).txn_app_id is None
    given = parse(defaults=session, txnAppId="mine", txnVersion="1")
    assert (given.txn_app_id, given.txn_version) == ("mine", 1)
    nearer = parse(defaults={**session, "txnAppId": "ours", "txnVersion": "2"})
    assert (nearer.txn_app_id, nearer.txn_version) == ("ours", 2)
    assert "give txnVersion, too" in refusal(defaults=session, txnAppId="mine")


@pytest.mark.parametrize(("given", "missing"), [(APP, VERSION), (VERSION, APP)])
def test_one_of_deltas_session_settings_alone_is_refused(given, missing):
    assert f"the session sets {given} and not {missing}" in refusal(defaults={given: "7"})
    parse(streaming=True, defaults={given: "7"})
    parse(defaults={given: "7"}, txnAppId="mine", txnVersion="1")
