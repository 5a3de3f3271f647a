"""What an epoch and a commit cost at a real S3 server."""

from __future__ import annotations

import uuid

import pytest

from lakecommit.testing.s3 import LocalS3

from .streams import Source


@pytest.fixture(scope="module")
def quiet_s3():
    """One of its own: the committer of this driver still tidies up what other tests have left on theirs."""
    with LocalS3() as s3:
        s3.create_bucket("lake")
        yield s3


@pytest.fixture
def stored(quiet_s3):
    """A fresh table's location and the options that reach it."""
    options = {f"store.{key}": value for key, value in quiet_s3.store_options().items()}
    return f"s3://lake/{uuid.uuid4().hex}", options


# Every other entry of this Parquet directory is a compact: epochs 1 and 3.
FORMATS = {"delta": {}, "parquet": {"tableFormat": "parquet", "compactInterval": "2"}}


@pytest.mark.parametrize("table_format", FORMATS)
def test_an_epoch_of_two_files_is_six_puts_and_nothing_else(spark, tmp_path, quiet_s3, stored, table_format):
    location, options = stored
    source = Source(tmp_path / "input")
    source.add(range(100))
    query = (
        source.frame(spark)
        .writeStream.format("lakecommit")
        .options(**options, **FORMATS[table_format])
        .option("checkpointLocation", str(tmp_path / "c"))
        .start(location)
    )
    try:
        query.processAllAvailable()
        for epoch in range(1, 4):
            quiet_s3.reset_counts()
            source.add(range(100 * epoch, 100 * epoch + 100))
            query.processAllAvailable()
            assert quiet_s3.counts() == {"PUT": 6}, quiet_s3.requests()
            kinds = [_kind(key) for _, key in quiet_s3.requests()]
            # Manifests before data, data before the seal, the seal before the version: the order is the protocol.
            assert kinds[4:] == ["seal", "version"]
            assert sorted(kinds[:4]) == ["data", "data", "manifest", "manifest"]
            assert kinds[0] == "manifest"
            if table_format == "parquet":
                _, key = quiet_s3.requests()[-1]
                assert key.endswith(f"_spark_metadata/{epoch}.compact" if epoch % 2 else f"_spark_metadata/{epoch}")
    finally:
        query.stop()


def _kind(key: str) -> str:
    logs = (("_delta_log/", "version"), ("_spark_metadata/", "version"))
    for part, kind in (("/writers/", "manifest"), ("/seals/", "seal"), *logs):
        if part in key:
            return kind
    return "data"
