"""`Trigger.Continuous`: epochs without reports. Spark logs our error and lets the query go on, with nothing sealed.

pyspark's `start()` refuses it once `register` was called; Scala's is as Spark made it.
"""

from __future__ import annotations

import pytest
from pyspark.sql.streaming import StreamingQuery

from .faults import wait_for

pytestmark = pytest.mark.spark

MESSAGE = "nothing was sealed; Trigger.Continuous is not supported, use a micro-batch trigger"


def test_nothing_of_a_continuous_query_is_sealed_and_the_log_says_why(spark, tmp_path, spark_log):
    table, checkpoint = tmp_path / "table", tmp_path / "c"
    rate = spark.readStream.format("rate").option("numPartitions", 1).option("rowsPerSecond", 10).load()
    writer = rate.writeStream.format("lakecommit").option("checkpointLocation", str(checkpoint))
    query = StreamingQuery(writer.trigger(continuous="1 second")._jwrite.start(str(table)))
    try:
        wait_for(lambda: MESSAGE in spark_log())
        # Spark goes on to read its source, epoch after epoch, and waits for the commit of the first.
        wait_for((checkpoint / "offsets" / "4").exists)
        assert query.isActive
        assert query.exception() is None
    finally:
        query.stop()
    assert [path for path in table.rglob("*") if path.is_file()] == []
    assert list((checkpoint / "commits").glob("[0-9]*")) == []
    assert spark_log().count(MESSAGE) == 1, "it is said once, so that one has to look for it"
