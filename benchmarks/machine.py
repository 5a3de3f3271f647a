"""What the figures were measured on and with."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("lakecommit", "pyspark", "delta-spark", "pyarrow", "obstore", "moto")


def describe() -> dict[str, str]:
    return {
        "cpu": f"{_cpu_model()}, {os.cpu_count()} cores",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "java": _java(),
        **{name: version(name) for name in PACKAGES},
    }


def load() -> float:
    """The load of the last minute: what else the machine was doing when the run began."""
    return os.getloadavg()[0]


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _java() -> str:
    shown = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    return next(iter(shown.stderr.splitlines()), "unknown")
