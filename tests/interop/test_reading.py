"""Tables that delta-spark made with what readers have to know: read as by its own reader, or refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import lakecommit
from lakecommit.errors import UnsupportedTable
from lakecommit.formats.delta.schema.protocol import READER_FEATURES
from tests.interop.appending import delta_at
from tests.unit.formats.delta.fakes import run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

# Each statement is about `T`.
MAPPED = (
    "CREATE TABLE T (id BIGINT, gone STRING, s STRUCT<a: INT, b: STRING>, p DATE) USING delta PARTITIONED BY (p) "
    "TBLPROPERTIES ('delta.columnMapping.mode'='{mode}', 'delta.enableDeletionVectors'='true', "
    "'delta.enableChangeDataFeed'='true', 'delta.enableRowTracking'='true', 'delta.checkpointPolicy'='v2', "
    "'delta.enableInCommitTimestamps'='true', 'delta.enableTypeWidening'='true')",
    "INSERT INTO T SELECT id, 'x', struct(cast(id as int), 'b'), date_add(DATE '2024-01-01', cast(id % 2 as int)) "
    "FROM range(0, 100, 1, 1)",
    "DELETE FROM T WHERE id % 7 = 0",
    "ALTER TABLE T DROP COLUMN gone",
    "ALTER TABLE T RENAME COLUMN id TO number",
    "ALTER TABLE T RENAME COLUMN s.a TO c",
    "ALTER TABLE T RENAME COLUMN p TO day",
    "ALTER TABLE T ALTER COLUMN s.c TYPE BIGINT",
    "ALTER TABLE T ADD COLUMNS (gone INT, s.d DOUBLE)",
    "INSERT INTO T SELECT 1000 + id, struct(2L * id, 'c', 0.5D), NULL, 7 FROM range(3)",
    "UPDATE T SET gone = 8 WHERE number = 3",
)
WIDENED = (
    "CREATE TABLE T (a BYTE, b INT, c FLOAT, d DECIMAL(5,2), e DATE, f INT, g SHORT) USING delta "
    "TBLPROPERTIES ('delta.enableTypeWidening'='true', 'delta.feature.typeWidening-preview'='supported', "
    "'delta.feature.timestampNtz'='supported')",
    "INSERT INTO T VALUES (1, 2, 1.5, 3.25, DATE '1500-01-01', 5, -6), (NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    *(
        f"ALTER TABLE T ALTER COLUMN {column} TYPE {kind}"
        for column, kind in {
            **{"a": "INT", "b": "DOUBLE", "c": "DOUBLE", "d": "DECIMAL(10,4)"},
            **{"e": "TIMESTAMP_NTZ", "f": "DECIMAL(20,2)", "g": "BIGINT"},
        }.items()
    ),
    "INSERT INTO T VALUES (100000, 0.5, 1e300, 123456.7891, TIMESTAMP_NTZ '2024-01-01 01:02:03', 1e10, 1e15)",
)
# Readers have to know them, and no column makes use of them.
DORMANT = (
    "typeWidening-preview",
    "vacuumProtocolCheck",
    "variantShredding",
    "variantShredding-preview",
    "variantType",
    "variantType-preview",
)
OTHERS = (
    "CREATE TABLE T (id BIGINT GENERATED ALWAYS AS IDENTITY, n INT, twice INT GENERATED ALWAYS AS (n * 2), "
    "c CHAR(4), v VARCHAR(5), x STRING DEFAULT 'none' COMMENT 'what', t TIMESTAMP_NTZ, m MAP<STRING, ARRAY<DATE>>) "
    "USING delta CLUSTER BY (n) TBLPROPERTIES ('delta.feature.allowColumnDefaults'='supported'"
    + "".join(f", 'delta.feature.{name}'='supported'" for name in DORMANT)
    + ")",
    "ALTER TABLE T ADD CONSTRAINT positive CHECK (n >= 0)",
    "INSERT INTO T (n, c, v, t, m) VALUES (1, 'ab', 'cd', TIMESTAMP_NTZ '1900-01-01 00:00:00', "
    "map('k', array(DATE '0001-01-01', NULL))), (2, NULL, '', NULL, NULL)",
    "ALTER TABLE T ADD COLUMNS (y INT)",
    "INSERT INTO T (n, y) VALUES (3, 4)",
)
PARTITIONED = (
    "CREATE TABLE T (x INT, s STRING, b BOOLEAN, i TINYINT, l BIGINT, f FLOAT, d DOUBLE, m DECIMAL(10,3), a DATE, "
    "t TIMESTAMP, n TIMESTAMP_NTZ, y BINARY) USING delta PARTITIONED BY (s, b, i, l, f, d, m, a, t, n, y)",
    "INSERT INTO T VALUES "
    "(1, 'a b/c=d%é', true, -5, 7, 1.5, double('NaN'), 1.25, DATE '2024-02-29', "
    "TIMESTAMP '2024-07-01 12:00:00.000001', TIMESTAMP_NTZ '2024-07-01 12:00:00.5', cast('é' as binary)), "
    "(2, '', false, 127, -1, float('-Infinity'), -0.0, -0.5, DATE '0001-01-01', TIMESTAMP '1850-01-01 00:00:00', "
    "TIMESTAMP_NTZ '9999-12-31 23:59:59', cast('' as binary)), "
    "(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
)
READ = {
    "mapped by name": tuple(each.replace("{mode}", "name") for each in MAPPED),
    "mapped by id": tuple(each.replace("{mode}", "id") for each in MAPPED),
    "widened": WIDENED,
    "others": OTHERS,
    "partitioned": PARTITIONED,
}
# What the protocol of each says that readers have to know.
USED = ("columnMapping", "deletionVectors", "typeWidening", "v2Checkpoint")
FEATURES = {
    "mapped by name": USED,
    "mapped by id": USED,
    "widened": ("timestampNtz", "typeWidening-preview"),
    "others": ("timestampNtz", *DORMANT),
    "partitioned": ("timestampNtz",),
}
# By what is in the way.
REFUSED = {
    r"variantType \(column v\)": "(id INT, v VARIANT) USING delta",
    r"variantType \(column s\.v\)": "(id INT, s STRUCT<v: VARIANT>) USING delta "
    "TBLPROPERTIES ('delta.feature.variantType-preview'='supported', 'delta.enableVariantShredding'='true')",
    "the feature geospatial: it is not known": "(id INT) USING delta "
    "TBLPROPERTIES ('delta.feature.geospatial'='supported')",
}


def made(spark: SparkSession, path: Path, statements: tuple[str, ...]) -> None:
    """Tables of a path take no statement that makes them: a name stands for it meanwhile."""
    spark.sql("DROP TABLE IF EXISTS read_back")
    for number, statement in enumerate(statements):
        text = statement.replace("TABLE T ", "TABLE read_back ").replace("INTO T ", "INTO read_back ")
        text = text.replace("FROM T ", "FROM read_back ").replace("UPDATE T ", "UPDATE read_back ")
        spark.sql(text.replace(" USING delta", f" USING delta LOCATION '{path}'", 1) if number == 0 else text)
    spark.sql("DROP TABLE read_back")


def rows(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


@pytest.fixture(autouse=True)
def zone(spark: SparkSession):
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield
    spark.conf.unset("spark.sql.session.timeZone")


# Ids differ from names in where a column is found, which tests/unit/reading/test_rows.py asks.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak if name == "mapped by id" else ()) for name in READ]
)
def test_rows_are_those_of_deltas_reader(spark: SparkSession, tmp_path: Path, name: str) -> None:
    made(spark, tmp_path / "t", READ[name])
    state = run(delta_at(tmp_path / "t").open())
    assert state is not None and state.protocol.reader_features >= set(FEATURES[name])
    ours, theirs = (spark.read.format(each).load(str(tmp_path / "t")) for each in ("lakecommit", "delta"))
    assert [(field.name, field.dataType) for field in ours.schema] == [
        (field.name, field.dataType) for field in theirs.schema
    ]
    found = rows(theirs)
    assert rows(ours) == found
    assert len(found) >= 3
    split = spark.read.format("lakecommit").option("splitSize", "1k").load(str(tmp_path / "t"))
    assert split.count() == len(found)


def test_what_cannot_be_read_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    for number, (named, table) in enumerate(REFUSED.items()):
        made(spark, tmp_path / str(number), (f"CREATE TABLE T {table}",))
        with pytest.raises(Exception, match=named):
            spark.read.format("lakecommit").load(str(tmp_path / str(number)))


@pytest.fixture
def coordinated(spark: SparkSession):
    """Tables that are made meanwhile have their commits coordinated, by what the driver remembers."""
    commits = spark._jvm.org.apache.spark.sql.delta.coordinatedcommits
    builder = commits.InMemoryCommitCoordinatorBuilder(100)
    getattr(getattr(commits, "CommitCoordinatorProvider$"), "MODULE$").registerBuilder(builder)
    prefix = "spark.databricks.delta.properties.defaults.coordinatedCommits.commitCoordinator"
    settings = {f"{prefix}-preview": builder.getName(), f"{prefix}Conf-preview": "{}"}
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield
    for key in settings:
        spark.conf.unset(key)


@pytest.mark.usefixtures("coordinated")
def test_what_a_coordinator_has_is_not_read_without_it(spark: SparkSession, tmp_path: Path) -> None:
    """Delta lists the feature as one of writers, and its log has nothing but the first version."""
    path = str(tmp_path / "t")
    made(spark, tmp_path / "t", ("CREATE TABLE T (id INT) USING delta", "INSERT INTO T VALUES (1)"))
    assert [each.name for each in (tmp_path / "t" / "_delta_log").glob("*.json")] == [f"{0:020d}.json"]
    with pytest.raises(Exception, match="the feature coordinatedCommits-preview: its newest versions are with its"):
        spark.read.format("lakecommit").load(path)
    with pytest.raises(UnsupportedTable, match="coordinatedCommits-preview"):
        lakecommit.files(path)


def test_every_feature_that_delta_spark_has_for_readers_is_read_or_refused_here(spark: SparkSession) -> None:
    """Where delta-spark has a new one, it is to be honoured, or its refusal to be tested."""
    features = getattr(spark._jvm.org.apache.spark.sql.delta, "TableFeature$")
    found = getattr(features, "MODULE$").allSupportedFeaturesMap().valuesIterator()
    known = set()
    while found.hasNext():
        feature = found.next()
        if feature.isReaderWriterFeature():
            known.add(feature.name())
    assert {name for names in FEATURES.values() for name in names} == known & READER_FEATURES == READER_FEATURES
    # A catalog has to make the second, and logs that are written by hand have the first and the last.
    assert known - READER_FEATURES == {"adaptiveMetadata-preview", "catalogManaged", "geospatial", "geospatial-dev"}
