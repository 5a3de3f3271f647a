"""Jars from Maven Central, resolved with the Ivy that comes with Spark."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import pyspark

# The versions that Spark's Kafka source is built with.
KAFKA = "3.9.2"
_POOL = "2.13.1"
# Later ones are not always to be had; the source needs it to be there, and uses it only for brokers with passwords.
_TOKENS = "4.0.0"

_ROW = '<dependency org="{}" name="{}" rev="{}" transitive="{}"/>'
_MODULE = """
<ivy-module version="2.0">
  <info organisation="lakecommit" module="{name}"/>
  <configurations><conf name="jars"/></configurations>
  <dependencies defaultconf="jars->default">{rows}</dependencies>
</ivy-module>
"""


class Unresolved(Exception):
    """The registry does not have the jars, or cannot be reached."""


def broker_jars() -> str:
    """The class path of a broker, with a log on standard error."""
    wanted = [f"org.apache.kafka:kafka_2.13:{KAFKA}", "org.slf4j:slf4j-simple:1.7.36"]
    return _resolve(f"kafka-broker-{KAFKA}", wanted, transitive=True)


def source_jars() -> str:
    """The class path of Spark's Kafka source: what Spark itself does not have of it."""
    spark = version("pyspark")
    wanted = [
        f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark}",
        f"org.apache.spark:spark-token-provider-kafka-0-10_2.13:{_TOKENS}",
        f"org.apache.kafka:kafka-clients:{KAFKA}",
        f"org.apache.commons:commons-pool2:{_POOL}",
    ]
    return _resolve(f"kafka-source-{spark}", wanted, transitive=False)


def _resolve(name: str, coordinates: Sequence[str], *, transitive: bool) -> str:
    """A class path of the jars. Where they ended up is remembered, so that only the first time needs the network."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lakecommit"
    memory = cache / f"{name}.classpath"
    known = memory.read_text().strip() if memory.exists() else ""
    if known and all(Path(jar).is_file() for jar in known.split(os.pathsep)):
        return known
    cache.mkdir(parents=True, exist_ok=True)
    # Written aside and renamed: two processes may resolve at the same time.
    module, aside = cache / f"{name}.{os.getpid()}.xml", cache / f"{name}.{os.getpid()}"
    rows = "".join(_ROW.format(*coordinate.split(":"), str(transitive).lower()) for coordinate in coordinates)
    module.write_text(_MODULE.format(name=name, rows=rows))
    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    command = ["java", "-jar", ivy, "-m2compatible", "-ivy", module, "-cache", cache / "ivy", "-cachepath", aside]
    try:
        found = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        missing = [line.strip(":\t ") for line in found.stdout.splitlines() if line.endswith(": not found")]
        if found.returncode != 0 or not aside.exists():
            raise Unresolved(f"{name} cannot be had: {', '.join(missing) or 'the registry was not reached'}")
        aside.replace(memory)
    finally:
        module.unlink()
        aside.unlink(missing_ok=True)
    return memory.read_text().strip()
