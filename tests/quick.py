"""Settings for sessions whose queries are tiny and run once: compiling and verifying cost more than they save."""

from __future__ import annotations

import importlib.util
from pathlib import Path

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
NO_COMPILING = {
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}
QUICK = {
    **NO_COMPILING,
    # The usual one starts a process (readlink) a dozen times for each file of a checkpoint.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
}


def make_spark_home(directory: Path) -> None:
    """Spark as pyspark has it, without the zip of pyspark: Python compiles that anew in each worker that starts."""
    found = importlib.util.find_spec("pyspark")
    if found is not None and found.origin is not None:
        for name in ("bin", "jars"):
            (directory / name).symlink_to(Path(found.origin).parent / name)
