"""The lakes of tests without Spark, by format."""

from collections.abc import Mapping

from tests.lake import Lake
from tests.lake.directory import Directory

LAKES: Mapping[str, type[Lake]] = {"delta": Lake, "parquet": Directory}
