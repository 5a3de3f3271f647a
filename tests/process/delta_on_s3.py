"""delta-spark appends one row to a table on S3: `python -m tests.process.delta_on_s3 ENDPOINT LOCATION`."""

from __future__ import annotations

import sys

from .s3a import s3a_location, s3a_session


def main(endpoint: str, location: str) -> None:
    spark = s3a_session("delta-on-s3", endpoint)
    row = spark.sql("SELECT 1000L AS id, 'of delta' AS text").coalesce(1)
    row.write.format("delta").mode("append").save(s3a_location(location))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
