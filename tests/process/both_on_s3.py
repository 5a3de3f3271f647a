"""delta-spark and lakecommit append to a table on S3, reached with nothing but Hadoop's settings of the session.

`python -m tests.process.both_on_s3 ENDPOINT LOCATION` prints the ids of the table after each.
"""

from __future__ import annotations

import os
import sys

import lakecommit
from benchmarks.places import HADOOP_AWS
from lakecommit.testing.s3 import ACCESS_KEY_ID, REGION, SECRET_ACCESS_KEY
from lakecommit.testing.sessions import delta_session
from tests.quick import QUICK


def main(endpoint: str, location: str) -> None:
    bucket = location.partition("://")[2].partition("/")[0]
    settings = {
        # Of the bucket's own and of all buckets', the bucket's own counts.
        f"bucket.{bucket}.endpoint": endpoint.removeprefix("http://"),
        "endpoint": "127.0.0.1:9",
        "connection.ssl.enabled": "false",
        "access.key": ACCESS_KEY_ID,
        "secret.key": SECRET_ACCESS_KEY,
        "endpoint.region": REGION,
        "path.style.access": "true",
    }
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    conf = {f"spark.hadoop.fs.s3a.{name}": value for name, value in settings.items()}
    conf["spark.delta.logStore.s3a.impl"] = "io.delta.storage.S3SingleDriverLogStore"
    spark = delta_session("both-on-s3", extra_conf={**QUICK, **conf}, packages=(HADOOP_AWS,))
    lakecommit.register(spark)
    table = location.replace("s3://", "s3a://")
    for number, sink in enumerate(("delta", "lakecommit", "delta")):
        spark.range(number, number + 1).write.format(sink).mode("append").save(table)
        ids = sorted(row.id for row in spark.read.format("delta").load(table).collect())
        print(f"RESULT {sink} {ids}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
