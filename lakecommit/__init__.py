"""lakecommit: writes and reads lakehouse tables from Spark, with coordinator-side commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakecommit.listening.api import CommitListener, CommittedSnapshot
from lakecommit.listening.partition_done import PartitionDone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakecommit.leases.reader import ReaderLease

__version__ = "0.1.0"
__all__ = [
    "CommitListener",
    "CommittedSnapshot",
    "PartitionDone",
    "__version__",
    "drain",
    "files",
    "lease",
    "metrics",
    "register",
]


def register(spark: SparkSession, *, listeners: Sequence[CommitListener] = ()) -> None:
    """Makes `format("lakecommit")` known to `spark` and starts its committer in this process. Again is harmless.

    `listeners` are told of every snapshot of the process's streams, after it; see `lakecommit.listening.api`.
    """
    from lakecommit.spark_ext.registration import register as register_with  # noqa: PLC0415 (Spark is an extra)

    register_with(spark, listeners)


def drain(timeout: float = 60) -> None:
    """Waits until nothing that streams of this process have sealed is pending, at most `timeout` seconds.

    Raises `lakecommit.errors.StillPending` if that was not long enough: nothing is lost, and the next run of the
    query commits it. Raises what made a commit fail, if one did.
    """
    from lakecommit.spark_ext.registration import drain as drain_all  # noqa: PLC0415 (Spark is an extra)

    drain_all(timeout)


def metrics() -> dict[str, dict[str, dict[str, object]]]:
    """What streams of this process have committed and what of them is pending, by table and query id.

    Streams that read a table are there, too, as `reader-` and the lease that they hold. All queries that run are there,
    and of the others the hundred whose last snapshots are the newest. `lakecommit.observing.metrics.QueryMetrics` says
    what each figure means. Spark's own metrics have the sums over all queries that ever ran, as gauges that begin with
    `lakecommit.`.
    """
    from lakecommit.spark_ext.registration import metrics as all_metrics  # noqa: PLC0415 (Spark is an extra)

    return all_metrics()


def files(table: str, **store: str) -> list[str]:
    """The data files of the newest version of the table at this location, and no others: for readers that know no log,
    such as DuckDB, pyarrow and Polars. Paths on local disk, URIs elsewhere.

    `store` are options of the object store, as in `store.region`. Raises `lakecommit.errors.UnsupportedTable` if the
    files alone do not say what rows the table has, as with deletion vectors.
    """
    from lakecommit.observing.files import list_files  # noqa: PLC0415 (not all who register read)

    return list_files(table, store)


def lease(table: str, version: int | None = None, ttl: str = "6h", *, holder: str = "", **store: str) -> ReaderLease:
    """Keeps lakecommit's vacuum from deleting what a version of the table needs, while somebody reads it.

        with lakecommit.lease("s3://bucket/table") as lease:
            rows = DeltaTable(lease.location, version=lease.version).to_pyarrow_table()
            lease.check()

    `version` is the newest one if it is None. The lease is renewed while the block lasts, and is over at its end; a
    process that dies keeps the files for `ttl` more. `holder` is what people are shown. `store` are options of the
    object store, as in `store.region`. Raises `lakecommit.errors.LeaseLost`, from `lease.check()` and at the end of the
    block, where it did not hold; docs/leases.md has an example for each of several readers.
    """
    from lakecommit.leases.reader import ReaderLease  # noqa: PLC0415 (not all who register read)

    return ReaderLease(table, version, ttl, holder or "lakecommit.lease", store)
