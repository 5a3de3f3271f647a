"""What users of Parquet directories may set."""

from __future__ import annotations

from collections.abc import Mapping

from lakecommit.errors import InvalidInput
from lakecommit.formats.parquet.names import LOG
from lakecommit.formats.settings import FormatSettings, listed

COMPACT_INTERVAL = "spark.sql.streaming.fileSink.log.compactInterval"

DEFAULTS = {
    COMPACT_INTERVAL: "compactInterval",
    "spark.sql.sources.partitionOverwriteMode": "partitionOverwriteMode",
    "spark.sql.files.maxRecordsPerFile": "maxRecordsPerFile",
    "spark.sql.parquet.compression.codec": "compression",
}


def _no_properties(properties: Mapping[str, str]) -> None:
    for name in properties:
        raise InvalidInput(f"option {name} is a property of Delta tables, and tableFormat is parquet; leave it out")


SETTINGS = FormatSettings(
    title="Parquet",
    log=LOG,
    property_prefix="",
    check_properties=_no_properties,
    session_settings={},
    taken_once={},
    session_defaults=DEFAULTS,
    property_defaults="",
    own_options=frozenset({"readPath", "compactInterval"}),
    refused={
        "userMetadata": "the log of a Parquet directory has no place for it",
        "overwriteSchema": "the files of a Parquet directory keep their schema; write to a new directory",
        "checkpointInterval": "the log of a Parquet directory is compacted as Spark's readers expect it",
    },
    replaces_epochs=False,
    features="docs/parquet.md",
    passed="nobody can read the directory until their entries are there, and the query puts them when it starts",
    foreign=(
        f"a directory that Spark's own file sink writes ({LOG} is there, without a record of lakecommit). A stream "
        "with tableFormat=parquet on its checkpointLocation takes it over; 'lakecommit files' lists what is committed"
    ),
    page=f"""\
Settings that Spark's own Parquet writers read count for Parquet directories:
{listed(DEFAULTS)}.
What a session asks of Delta is nothing to them.""",
)
