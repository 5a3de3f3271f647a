"""Sessions that reach a local S3 as Spark itself does. They need hadoop-aws, which the first of them downloads."""

from __future__ import annotations

from pyspark.sql import SparkSession

from benchmarks.places import HADOOP_AWS
from lakecommit.testing.s3 import ACCESS_KEY_ID, REGION, SECRET_ACCESS_KEY
from lakecommit.testing.sessions import delta_session


def s3a_session(app_name: str, endpoint: str) -> SparkSession:
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
    return delta_session(app_name, extra_conf=conf, packages=(HADOOP_AWS,))


def s3a_location(location: str) -> str:
    """As Spark's users spell it."""
    return location.replace("s3://", "s3a://")
