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


# What each says of an option, for a table at this location; "" where it writes.
OPTIONS = [
    # Delta's writer asks Hadoop for a class of that name, so that the option does count there.
    ("fs.nowhere.impl", "nowhere://b/t", "Class of.nobody.Files not found", "the scheme nowhere: is not known"),
    ("fs.nowhere.impl", "{}", "", "fs.nowhere.impl is a setting of Hadoop's, .* or set store.* options instead"),
    ("fs.s3a.impl", "{}", "", "fs.s3a.impl is a setting .* or set store.access_key_id, store.endpoint and the other"),
    ("fs.s3a.access.key", "{}", "", ""),
    ("fs.s3a.encryption.algorithm", "s3a://b/t", "S3AFileSystem not found", "set store.server_side_encryption, too"),
]


@pytest.mark.parametrize("sink", [pytest.param("delta", marks=pytest.mark.soak), "lakecommit"])
def test_hadoops_settings_as_options_of_a_write(spark, tmp_path, sink):
    """Delta's S3 is one of Hadoop's, which is not there: tests/process/test_hadoops_settings.py has it."""
    for number, (option, location, *messages) in enumerate(OPTIONS):
        table, message = tmp_path / str(number), messages[sink == "lakecommit"]
        writer = spark.range(1).write.format(sink).mode("append").option(option, "of.nobody.Files")
        if not message:
            writer.save(location.format(table))
            assert list(table.glob("*.parquet"))
            continue
        with pytest.raises(Exception, match=message):
            writer.save(location.format(table))
        assert not table.exists()
