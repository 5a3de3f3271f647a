"""Delta's table properties: canonical names, kinds of values, and the feature that each one takes.

Spark hands options over in lower case while Delta's property names are case-sensitive, so every known name is listed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from lakecommit.errors import InvalidInput
from lakecommit.formats.delta.schema.protocol import SUPPORTED, SYMLINK_MANIFESTS

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "mode": ("none", "name", "id"),
    "policy": ("classic", "v2"),
    "isolation": ("Serializable", "WriteSerializable"),
}

# Name -> kind of value: bool, positive, indexed, duration, text, or a key of _CHOICES.
_KINDS: Mapping[str, str] = {
    "delta.appendOnly": "bool",
    "delta.autoOptimize.autoCompact": "text",
    "delta.autoOptimize.optimizeWrite": "bool",
    "delta.checkpoint.writeStatsAsJson": "bool",
    "delta.checkpoint.writeStatsAsStruct": "bool",
    "delta.checkpointInterval": "positive",
    "delta.checkpointPolicy": "policy",
    "delta.checkpointRetentionDuration": "duration",
    "delta.columnMapping.mode": "mode",
    SYMLINK_MANIFESTS: "bool",
    "delta.dataSkippingNumIndexedCols": "indexed",
    "delta.dataSkippingStatsColumns": "text",
    "delta.dataSkippingStringPrefixLength": "positive",
    "delta.deletedFileRetentionDuration": "duration",
    "delta.dropFeatureTruncateHistory.retentionDuration": "duration",
    "delta.enableChangeDataFeed": "bool",
    "delta.enableDeletionVectors": "bool",
    "delta.enableExpiredLogCleanup": "bool",
    "delta.enableFullRetentionRollback": "bool",
    "delta.enableIcebergCompatV1": "bool",
    "delta.enableIcebergCompatV2": "bool",
    "delta.enableIcebergCompatV3": "bool",
    "delta.enableInCommitTimestamps": "bool",
    "delta.enableMaterializePartitionColumnsFeature": "bool",
    "delta.enableRowTracking": "bool",
    "delta.enableTypeWidening": "bool",
    "delta.enableVariantShredding": "bool",
    "delta.isolationLevel": "isolation",
    "delta.logRetentionDuration": "duration",
    "delta.parquet.compression.codec": "text",
    "delta.parquet.format.version": "text",
    "delta.randomPrefixLength": "positive",
    "delta.randomizeFilePrefixes": "bool",
    "delta.sampleRetentionDuration": "duration",
    "delta.setTransactionRetentionDuration": "duration",
    "delta.targetFileSize": "text",
    "delta.tuneFileSizesForRewrites": "bool",
    "delta.universalFormat.enabledFormats": "text",
    "delta.writePartitionColumnsToParquet": "bool",
}

# Properties that ask for what lakecommit cannot write, with the name of that.
_REFUSED: Mapping[str, str] = {
    "delta.enableIcebergCompatV1": "icebergCompatV1",
    "delta.enableIcebergCompatV2": "icebergCompatV2",
    "delta.enableIcebergCompatV3": "icebergCompatV3",
    "delta.enableMaterializePartitionColumnsFeature": "materializePartitionColumns",
    "delta.enableVariantShredding": "variantShredding",
    "delta.universalFormat.enabledFormats": "universal format",
    "delta.writePartitionColumnsToParquet": "materialized partition columns",
    SYMLINK_MANIFESTS: "symlink manifests",
}

_FEATURE_OF_FLAG: Mapping[str, tuple[str, ...]] = {
    "delta.enableChangeDataFeed": ("changeDataFeed",),
    "delta.enableDeletionVectors": ("deletionVectors",),
    "delta.enableInCommitTimestamps": ("inCommitTimestamp",),
    "delta.enableRowTracking": ("rowTracking", "domainMetadata"),
    "delta.enableTypeWidening": ("typeWidening",),
}

_FEATURE_PREFIX = "delta.feature."
_DURATION = re.compile(
    r"(?:interval\s+)?(?:-?\d+\s+(?:nanosecond|microsecond|millisecond|second|minute|hour|day|week)s?\s*)+", re.I
)
_BY_LOWER = {name.lower(): name for name in _KINDS}
_FEATURE_BY_LOWER = {name.lower(): name for name in SUPPORTED}


@dataclass(frozen=True, slots=True)
class TableProperties:
    """What a new table gets: its `configuration`, and the features that the protocol must list for it."""

    configuration: Mapping[str, str]
    features: frozenset[str]

    @property
    def column_mapping_mode(self) -> str:
        return self.configuration.get("delta.columnMapping.mode", "none")


def table_properties(properties: Mapping[str, str]) -> TableProperties:
    """Checks the user's properties and restores the case of their names.

    Names that do not begin with `delta.` are kept as they are. Raises `InvalidInput` for a name that Delta does not
    know (with the nearest one), a value of another kind, or a property whose feature is not supported here.
    """
    configuration: dict[str, str] = {}
    features: set[str] = set()
    for given, value in properties.items():
        lower = given.lower()
        if not lower.startswith("delta."):
            configuration[given] = value
        elif lower.startswith(_FEATURE_PREFIX):
            features.add(_feature(given, value))
        else:
            name = _canonical(given)
            if name in configuration:
                raise InvalidInput(f"the table property {name} is given twice; give it once")
            configuration[name] = _checked(name, value)
    for name, value in configuration.items():
        if name in _REFUSED and value not in {"false", ""}:
            raise InvalidInput(
                f"{name}={value} needs {_REFUSED[name]}, which lakecommit cannot write; leave the property out"
            )
        if value == "true":
            features.update(_FEATURE_OF_FLAG.get(name, ()))
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        features.add("columnMapping")
    if configuration.get("delta.checkpointPolicy") == "v2":
        features.add("v2Checkpoint")
    if features & {"rowTracking", "clustering"}:
        features.add("domainMetadata")
    return TableProperties(configuration, frozenset(features))


def _canonical(given: str) -> str:
    name = _BY_LOWER.get(given.lower())
    if name is not None:
        return name
    if given.lower().startswith("delta.constraints."):
        raise InvalidInput(
            f"{given}: checkConstraints are added with ALTER TABLE … ADD CONSTRAINT once the table is there"
        )
    if given.lower() in {"delta.minreaderversion", "delta.minwriterversion"}:
        raise InvalidInput(f"{given} cannot be set; the protocol follows from the features that the table uses")
    nearest = difflib.get_close_matches(given.lower(), _BY_LOWER, n=1, cutoff=0.6)
    hint = f"did you mean {_BY_LOWER[nearest[0]]}?" if nearest else "see Delta's list of table properties"
    raise InvalidInput(f"unknown table property {given}; {hint}")


def _feature(given: str, value: str) -> str:
    lower = given[len(_FEATURE_PREFIX) :].lower()
    if value.lower() not in {"supported", "enabled"}:
        raise InvalidInput(f"{given} must be supported, not {value!r}")
    if lower in _FEATURE_BY_LOWER:
        return _FEATURE_BY_LOWER[lower]
    raise InvalidInput(f"{given}: lakecommit does not support this table feature; leave the property out")


def _checked(name: str, value: str) -> str:
    """The value as Delta reads it. Raises `InvalidInput` with what is expected."""
    kind = _KINDS[name]
    text = value.strip()
    if kind in _CHOICES:
        for choice in _CHOICES[kind]:
            if text.lower() == choice.lower():
                return choice
        expected = "one of " + ", ".join(_CHOICES[kind])
    elif kind == "bool":
        if text.lower() in {"true", "false"}:
            return text.lower()
        expected = "true or false"
    elif kind == "positive":
        if text.isascii() and text.isdigit() and int(text) > 0:
            return text
        expected = "a whole number above 0"
    elif kind == "indexed":
        if re.fullmatch(r"-1|\d+", text, re.ASCII):
            return text
        expected = "a whole number, or -1 for all columns"
    elif kind == "duration":
        if _DURATION.fullmatch(text):
            return text
        expected = "a duration such as 'interval 7 days'"
    else:
        return value
    raise InvalidInput(f"the table property {name} must be {expected}, not {value!r}")
