"""Whether Spark's workers can run lakecommit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

from pyspark import SparkContext, SparkFiles

from lakecommit.errors import InvalidInput

TIMEOUT_SECONDS = 60
_PROBE = (
    "import json, sys, lakecommit, pyarrow; print(json.dumps(['%d.%d' % sys.version_info[:2], lakecommit.__version__]))"
)


def check_workers(context: SparkContext) -> None:
    """Raises `InvalidInput` unless the Python that Spark's workers run has this very lakecommit.

    That Python itself is asked, on this machine, where planning and committing is done: a Spark job would say the same
    in tens of lines of Java. Executors elsewhere have a Python of their own, so that on a cluster a task is asked, too.
    """
    python = str(context.pythonExec)
    try:
        asked = subprocess.run(
            [python, "-c", _PROBE],
            env=_environment(context),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _refused(f"{python}, which is to run Spark's workers, does not run ({type(error).__name__})") from None
    if asked.returncode != 0:
        reason = (asked.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise _refused(f"{python}, which runs Spark's workers, cannot import lakecommit ({reason})")
    _compare(python, *json.loads(asked.stdout))
    if not re.match(r"local(\[|$)", context.master or ""):
        _check_executor(context)


def _check_executor(context: SparkContext) -> None:
    try:
        (found,) = context.parallelize([0], 1).map(_probe).collect()
    except Exception as error:
        text = str(error)
        if "No module named" in text and "lakecommit" in text:
            raise _refused("the Python of Spark's executors cannot import lakecommit") from None
        if "PYTHON_VERSION_MISMATCH" in text:
            raise _refused("Spark's executors run another version of Python than the driver") from None
        raise
    _compare("an executor's Python", *found)


def _environment(context: SparkContext) -> dict[str, str]:
    """What a worker is started with, and where it finds modules that were added to the context."""
    environment = {**os.environ, **context.environment}
    files = SparkFiles.getRootDirectory()
    added = [files, *(os.path.join(files, name) for name in context._python_includes or ())]
    paths = [*added, context.environment.get("PYTHONPATH"), os.environ.get("PYTHONPATH")]
    return {**environment, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def _probe(_: Any) -> tuple[str, str]:
    import lakecommit  # noqa: PLC0415 (imported on the worker, which is what is being asked)

    return "{}.{}".format(*sys.version_info[:2]), lakecommit.__version__


def _compare(who: str, python: str, version: str) -> None:
    own_python, own_version = _probe(None)
    if python != own_python:
        raise _refused(f"{who} is Python {python}, the driver's is {own_python}")
    if version != own_version:
        raise _refused(f"{who} has lakecommit {version}, the driver has {own_version}")


def _refused(problem: str) -> InvalidInput:
    _, version = _probe(None)
    return InvalidInput(
        f"{problem}; set PYSPARK_PYTHON={sys.executable} before the session is created (on a cluster: to a Python that "
        f"has lakecommit {version} on every node)"
    )
