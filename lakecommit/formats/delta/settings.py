"""Delta's words for what users set: its table properties, and its own settings of a Spark session."""

from __future__ import annotations

from lakecommit.formats.delta.log.names import LOG
from lakecommit.formats.delta.schema.clustering import CLUSTER_BY
from lakecommit.formats.delta.schema.properties import table_properties
from lakecommit.formats.settings import FormatSettings, listed

TXN_APP_ID = "spark.databricks.delta.write.txnAppId"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"
TXN_AUTO_RESET = "spark.databricks.delta.write.txnVersion.autoReset.enabled"

DEFAULTS = {
    "spark.databricks.delta.schema.autoMerge.enabled": "mergeSchema",
    "spark.databricks.delta.commitInfo.userMetadata": "userMetadata",
    "spark.databricks.delta.optimizeWrite.enabled": "optimizeWrite",
    "spark.databricks.delta.autoCompact.enabled": "autoCompact",
    "spark.sql.sources.partitionOverwriteMode": "partitionOverwriteMode",
    "spark.sql.files.maxRecordsPerFile": "maxRecordsPerFile",
    "spark.sql.parquet.compression.codec": "compression",
}
PROPERTIES = "spark.databricks.delta.properties.defaults."


SETTINGS = FormatSettings(
    title="Delta",
    log=LOG,
    property_prefix="delta.",
    check_properties=table_properties,
    session_settings={TXN_APP_ID: "txnAppId", TXN_VERSION: "txnVersion"},
    taken_once={TXN_VERSION: TXN_AUTO_RESET},
    session_defaults=DEFAULTS,
    property_defaults=PROPERTIES,
    own_options=frozenset({CLUSTER_BY}),
    features="docs/delta-features.md",
    vacuum_ms=7 * 24 * 3_600_000,
    refits="undo the change of the table (RESTORE TABLE brings a dropped column back, ADD COLUMN does not)",
    page=f"""\
Delta's session settings `{TXN_APP_ID}` and `{TXN_VERSION}`
count for batch writes as they do for Delta's own. They are used only if the write itself names no transaction, and
both or neither must be set. With `….txnVersion.autoReset.enabled` the version is unset once a write has taken it.
They are read from the registered session, not from the copy that `foreachBatch` works with: use the options there.

Other settings that Delta's writers read count for Delta tables, unless the write or `spark.lakecommit.<option>` says
otherwise:
{listed(DEFAULTS)}. With `{PROPERTIES}<property>` a new table gets `delta.<property>`.""",
)
