"""A table that forgets how far its queries have come, by Delta itself."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from .streams import Source, quick_ids, run

pytestmark = pytest.mark.spark

EXPIRE_AT_ONCE = "'delta.setTransactionRetentionDuration' = 'interval 0 seconds'"


def checkpoint_without_marks(spark, table) -> None:
    """Delta does not take marks that have expired into its checkpoints, nor are they in the version of this one."""
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ({EXPIRE_AT_ONCE})")
    log = spark._jvm.org.apache.spark.sql.delta.DeltaLog
    log.clearCache()
    log.forTable(spark._jsparkSession, str(table)).checkpoint()
    version = json.loads((table / "_delta_log/_last_checkpoint").read_text())["version"]
    written = pq.read_table(table / f"_delta_log/{version:020d}.checkpoint.parquet")
    assert written.column("txn").null_count == written.num_rows


@pytest.mark.soak
def test_a_restart_after_delta_has_expired_the_mark_is_refused(spark, tmp_path):
    table, checkpoint, source = tmp_path / "table", tmp_path / "c", Source(tmp_path / "input")
    source.add([1])
    run(source.frame(spark), table, checkpoint)
    checkpoint_without_marks(spark, table)
    # In another place nobody remembers the mark, as after a restart of the driver.
    elsewhere = table.rename(tmp_path / "elsewhere")
    source.add([2])
    with pytest.raises(Exception, match=r"epochs \[0\] of query .* are in the table, but its mark is not"):
        run(source.frame(spark), elsewhere, checkpoint)
    assert quick_ids(elsewhere) == [1], "never committed twice"
