"""What a machine has to have for Spark to write with lakecommit: Python, Java, Spark, workers that can import it."""

from __future__ import annotations

import enum
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

OLDEST_JAVA = 17
OLDEST_SPARK = (4, 2)
PROGRAM_TIMEOUT_S = 60

_WORKER_PROBE = (
    "import json, sys, importlib.metadata as m; import lakecommit, pyarrow; "
    "print(json.dumps([list(sys.version_info[:2]), m.version('lakecommit')]))"
)


class Verdict(enum.Enum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    verdict: Verdict
    facts: str
    remedy: str | None = None


def environment_checks(environment: Mapping[str, str] | None = None) -> list[Check]:
    known = os.environ if environment is None else environment
    return [check_python(), check_java(known), check_spark(), check_workers(known), check_delta_jar(known)]


def check_python() -> Check:
    # An interpreter that is too old does not come this far: the installation refuses it.
    return Check(
        "python", Verdict.OK, f"{sys.version.split()[0]}, lakecommit {_installed('lakecommit') or 'from source'}"
    )


def check_java(environment: Mapping[str, str]) -> Check:
    home = environment.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java", path=environment.get("PATH"))
    remedy = f"install a Java runtime {OLDEST_JAVA} or newer (Debian: openjdk-17-jre-headless), or set JAVA_HOME to one"
    if java is None:
        return Check("java", Verdict.FAILED, "not found", remedy)
    answer = _run([java, "-version"], environment)
    match = re.search(r'version "(?:1\.)?(\d+)[^"]*"', answer.stderr + answer.stdout) if answer else None
    if match is None:
        return Check("java", Verdict.FAILED, f"{java} does not run", remedy)
    verdict = Verdict.OK if int(match[1]) >= OLDEST_JAVA else Verdict.FAILED
    return Check(
        "java", verdict, f"{match[0].removeprefix('version ').strip(chr(34))} at {java}", _unless_ok(verdict, remedy)
    )


def check_spark() -> Check:
    found = _installed("pyspark")
    remedy = "pip install 'lakecommit[spark]'"
    if found is None:
        return Check("spark", Verdict.FAILED, "pyspark is not installed here", remedy)
    numbers = tuple(int(part) for part in re.findall(r"\d+", found)[:2])
    verdict = Verdict.OK if numbers >= OLDEST_SPARK else Verdict.FAILED
    return Check("spark", verdict, f"pyspark {found}", _unless_ok(verdict, remedy))


def check_workers(environment: Mapping[str, str]) -> Check:
    """Whether the Python that Spark starts for its workers has the same lakecommit."""
    named = environment.get("PYSPARK_PYTHON")
    python = named or shutil.which("python3", path=environment.get("PATH")) or "python3"
    source = "PYSPARK_PYTHON" if named else "python3 on the PATH, as PYSPARK_PYTHON is not set"
    remedy = f"export PYSPARK_PYTHON={sys.executable}"
    answer = _run([python, "-c", _WORKER_PROBE], environment)
    if answer is None:
        return Check("workers", Verdict.FAILED, f"{python} ({source}) does not run", remedy)
    if answer.returncode != 0:
        reason = (answer.stderr.strip().splitlines() or ["it failed"])[-1]
        return Check("workers", Verdict.FAILED, f"{python} ({source}) cannot run lakecommit: {reason}", remedy)
    numbers, lakecommit = json.loads(answer.stdout)
    if numbers != list(sys.version_info[:2]) or lakecommit != (_installed("lakecommit") or lakecommit):
        facts = (
            f"{python} ({source}) is Python {numbers[0]}.{numbers[1]} with lakecommit {lakecommit}, unlike the driver"
        )
        return Check("workers", Verdict.FAILED, facts, remedy)
    return Check("workers", Verdict.OK, f"{python} ({source})")


def check_delta_jar(environment: Mapping[str, str]) -> Check:
    jars = _delta_jars(environment)
    if jars:
        return Check("delta jar", Verdict.OK, f"{jars[-1].name} (writing needs none)")
    return Check("delta jar", Verdict.OK, "not found, and not needed for writing")


def _delta_jars(environment: Mapping[str, str]) -> list[Path]:
    """Delta's jars where Spark and its package resolver keep them."""
    places = []
    if home := environment.get("SPARK_HOME"):
        places.append(Path(home, "jars"))
    if query := environment.get("HOME"):
        places += [*Path(query).glob(".ivy2*/jars"), *Path(query).glob(".ivy2*/cache/io.delta/*/jars")]
    return sorted(jar for place in places for jar in place.glob("*delta-spark*.jar"))


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _unless_ok(verdict: Verdict, remedy: str) -> str | None:
    return None if verdict is Verdict.OK else remedy


def _run(command: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str] | None:
    """Runs a program away from the current directory, whose modules the workers would not see."""
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=PROGRAM_TIMEOUT_S,
            cwd=tempfile.gettempdir(),
            env=dict(environment),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
