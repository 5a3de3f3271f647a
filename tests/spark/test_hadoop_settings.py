"""Tables on S3 that are reached with what the session tells Hadoop."""

from __future__ import annotations

import asyncio
import logging
import uuid

import pytest

from lakecommit.demo.place import Place

from .streams import Source

pytestmark = pytest.mark.spark

SECRET = "a-secret-of-hadoop-that-is-nowhere-else"


def stored(place) -> list[str]:
    async def paths():
        return [info.path async for page in place.store().list("") for info in page]

    return asyncio.run(paths())


def test_the_sessions_own_settings_of_s3_suffice(spark, tmp_path, local_s3, caplog, capfd, spark_log):
    place = Place(f"s3://lake/{uuid.uuid4().hex}", local_s3.store_options(), local_s3)
    endpoint = local_s3.store_options()["endpoint"]
    settings = {
        "fs.s3a.access.key": "AKIAOFNOBODY00000002",
        "fs.s3a.secret.key": SECRET,
        "fs.s3a.endpoint": endpoint.removeprefix("http://"),
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.endpoint.region": "us-east-1",
    }
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    source = Source(tmp_path / "input")
    source.add([1])
    try:
        for key, value in settings.items():
            hadoop.set(key, value)
        with caplog.at_level(logging.DEBUG, "lakecommit"):
            spark.range(3).write.format("lakecommit").mode("append").save(place.location)
            query = source.frame(spark).select("id").writeStream.format("lakecommit")
            query = query.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
            query.start(place.location).awaitTermination()
            with pytest.raises(Exception, match="s3://nowhere") as refused:
                spark.range(3).write.format("lakecommit").mode("append").save("s3://nowhere/table")
    finally:
        for key in settings:
            hadoop.unset(key)
    assert len([path for path in stored(place) if path.endswith(".parquet")]) >= 2
    logged = "\n".join(str(vars(record)) + record.getMessage() for record in caplog.records)
    assert place.location in logged
    shown = (logged, "".join(capfd.readouterr()), spark_log(), str(refused.value))
    assert [text for text in shown if SECRET in text] == []
