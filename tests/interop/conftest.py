"""One Spark session with Delta for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from lakecommit.testing.sessions import delta_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    warehouse = tmp_path_factory.mktemp("warehouse")
    session = delta_session("lakecommit interop", extra_conf={"spark.sql.warehouse.dir": str(warehouse)})
    yield session
    session.stop()
