"""Where the query of a write reads from, by Spark's own plan of it.

The classes behind it are internal to Spark. If something fails here, the version does not say that it is a blind
append, and no more; so it is only logged.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import SparkSession

from lakecommit.model import QueryId

# How sources such as Delta's and that of files describe themselves: DeltaSource[s3a://bucket/table].
_SOURCE = re.compile(r"\w+\[(.+)\]")
_log = logging.getLogger("lakecommit.spark_ext")


def batch_reads(spark: SparkSession, execution: str) -> Sequence[str] | None:
    """The locations that a batch write reads, which runs as Spark's `execution`; None where they cannot be known."""
    try:
        jvm: Any = spark._jvm
        found = jvm.org.apache.spark.sql.execution.SQLExecution.getQueryExecution(int(execution))
        return None if found is None else _locations(found.analyzed())
    except Exception as error:
        _log.info("cannot find out which locations a batch write reads: %s", type(error).__name__)
        return None


def stream_reads(spark: SparkSession, query: QueryId) -> Sequence[str] | None:
    """The same for a query that runs, by the plan that all of its epochs have."""
    try:
        running = spark.streams.get(query)
        return None if running is None else _locations(running._jsq.streamingQuery().logicalPlan())
    except Exception as error:
        _log.info("cannot find out which locations query %s reads: %s", query, type(error).__name__)
        return None


def _locations(plan: Any) -> list[str]:
    """Those of files and tables, in subqueries, too.

    What comes from memory, such as collected rows, has none: it was read before the write began, as with Delta's own.
    """
    plans = [plan, *_each(plan.subqueriesAll())]
    return [location for each in plans for leaf in _each(each.collectLeaves()) for location in _of_leaf(leaf)]


def _of_leaf(leaf: Any) -> list[str]:
    match leaf.getClass().getSimpleName():
        case "LogicalRelation":
            relation = leaf.relation()
            if _is_a(relation, "HadoopFsRelation"):
                return [path.toString() for path in _each(relation.location().rootPaths())]
        case "StreamingExecutionRelation":
            described = _SOURCE.fullmatch(leaf.source().toString())
            return [described[1]] if described else []
        case "DataSourceV2Relation":
            path = leaf.options().get("path")
            return [] if path is None else [str(path)]
    return []


def _is_a(instance: Any, name: str) -> bool:
    """Whether an object of the JVM is of this class or of one below it, as that of Delta's relations is."""
    kind = instance.getClass()
    while kind is not None:
        if kind.getSimpleName() == name:
            return True
        kind = kind.getSuperclass()
    return False


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(number) for number in range(sequence.size()))
