"""What a table's properties ask of everybody who writes files: options of a write, and names of files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lakecommit.formats.plan import TableOption, WritePlan

# Those that Delta's open-source writers do not know keep the case that somebody gave them.
_OPTIONS = {
    "delta.targetFileSize": "targetFileSize",
    "delta.parquet.compression.codec": "compression",
    "delta.autoOptimize.optimizeWrite": "optimizeWrite",
    "delta.autoOptimize.autoCompact": "autoCompact",
}
_AUTO_OPTIMIZE = "delta.autoOptimize"
_RANDOM_PREFIXES = "delta.randomizeFilePrefixes"
_PREFIX_LENGTH = "delta.randomPrefixLength"
_DEFAULT_LENGTH = 2
# More characters spread files no better, and names have to fit into an object's.
_LONGEST_PREFIX = 32


def asked_of(plan: WritePlan, configuration: Mapping[str, str]) -> WritePlan:
    """The plan with what the properties of the table ask for."""
    found = {key.lower(): value for key, value in configuration.items()}
    options = {
        option: TableOption(option, found[key.lower()], key) for key, option in _OPTIONS.items() if key.lower() in found
    }
    if found.get(_AUTO_OPTIMIZE.lower(), "").lower() == "true":
        # What the older property says comes first.
        options["autoCompact"] = TableOption("autoCompact", "true", _AUTO_OPTIMIZE)
    return replace(plan, options=tuple(options.values()), random_prefix=_random_prefix(found))


def _random_prefix(found: Mapping[str, str]) -> int:
    if found.get(_RANDOM_PREFIXES.lower(), "").lower() != "true":
        return 0
    length = found.get(_PREFIX_LENGTH.lower(), "")
    return min(int(length), _LONGEST_PREFIX) if length.isdecimal() and int(length) else _DEFAULT_LENGTH
