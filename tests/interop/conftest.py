"""One Spark session with Delta for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from lakecommit.testing.sessions import delta_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Every query here is tiny and runs once, so that compiling it costs more than it saves.
_QUICK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    warehouse = tmp_path_factory.mktemp("warehouse")
    session = delta_session("lakecommit interop", extra_conf={**_QUICK, "spark.sql.warehouse.dir": str(warehouse)})
    yield session
    session.stop()
