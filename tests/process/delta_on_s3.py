"""delta-spark appends one row to a table on S3: `python -m tests.process.delta_on_s3 ENDPOINT LOCATION`."""

from __future__ import annotations

import sys

from benchmarks.places import HADOOP_AWS
from lakecommit.testing.s3 import ACCESS_KEY_ID, REGION, SECRET_ACCESS_KEY
from lakecommit.testing.sessions import delta_session


def main(endpoint: str, location: str) -> None:
    s3a = {
        "endpoint": endpoint,
        "access.key": ACCESS_KEY_ID,
        "secret.key": SECRET_ACCESS_KEY,
        "endpoint.region": REGION,
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
    }
    conf = {f"spark.hadoop.fs.s3a.{name}": value for name, value in s3a.items()}
    conf["spark.delta.logStore.s3a.impl"] = "io.delta.storage.S3SingleDriverLogStore"
    spark = delta_session("delta-on-s3", extra_conf=conf, packages=(HADOOP_AWS,))
    row = spark.sql("SELECT 1000L AS id, 'of delta' AS text").coalesce(1)
    row.write.format("delta").mode("append").save(location.replace("s3://", "s3a://"))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
