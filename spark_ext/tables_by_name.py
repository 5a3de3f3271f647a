"""Tables by name: where the catalog of a session has them, and the SQL that Spark hands to no Python data source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pyspark.errors import AnalysisException

from lakecommit.errors import InvalidInput
from lakecommit.formats.registry import DEFAULT

_DETAILS = "# Detailed Table Information"
_NOT_FOUND = "TABLE_OR_VIEW_NOT_FOUND"
_OURS = re.compile("lakecommit", re.IGNORECASE)
_TEXTS_AND_COMMENTS = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
# MERGE has a USING as well, and a schema may be called lakecommit: neither is followed by this.
_CREATES = re.compile(
    r"\s*(?:explain\s+(?:\w+\s+)?)?(?:create|replace|insert\s+overwrite(?:\s+local)?\s+directory)\b"
    r".*\busing\s+`?lakecommit`?(?![\w.`])",
    re.DOTALL | re.IGNORECASE,
)
_BY_PATH = re.compile(
    r"\b(?:from|join|into|overwrite|table|update|using)\s+`?lakecommit`?\s*\.\s*`[^`]*/", re.IGNORECASE
)


def location_of(spark: Any, name: str) -> str:
    """The location of the table with this name. Raises `InvalidInput` if it is none that lakecommit writes."""
    if not name.strip():
        raise InvalidInput("the name of the table is empty; write one such as db.orders")
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    except AnalysisException as error:
        if error.getCondition() == _NOT_FOUND:
            raise InvalidInput(
                f"there is no table {name}, and lakecommit makes none by name; create it first, with CREATE TABLE "
                f"{name} (…) USING delta, or write to a location and then name that, with CREATE TABLE {name} USING "
                "delta LOCATION '…'"
            ) from None
        reason = str(error).strip().partition("\n")[0]
        raise InvalidInput(f"table {name} cannot be looked up; see that it is there, by this name: {reason}") from error
    details = _details([(row[0], row[1]) for row in rows])
    provider, location = details.get("Provider", ""), details.get("Location")
    if details.get("Type", "VIEW") == "VIEW":
        raise InvalidInput(f"{name} is a view, and rows can be written only to a table; name the table")
    # A table of Parquet files in the catalog has no log that says what is in it.
    if provider.lower() != DEFAULT or not location:
        raise InvalidInput(
            f"table {name} is one of {provider or 'another kind'}, and lakecommit writes {DEFAULT}; name one "
            "that was created USING delta"
        )
    return location


def check_sql(text: str) -> None:
    """Raises `InvalidInput` for what Spark could only fail on, or make a table of that nobody can read."""
    if not _OURS.search(text):
        return
    words = _TEXTS_AND_COMMENTS.sub(" ", text)
    if _CREATES.match(words) or _BY_PATH.search(words):
        raise InvalidInput(
            "SQL cannot use lakecommit, since Spark hands it to no Python data source; create and read tables with "
            'delta, and write with df.write.format("lakecommit").mode("append").saveAsTable("db.orders")'
        )


def _details(rows: Sequence[tuple[str, str]]) -> dict[str, str]:
    """What stands below the columns: any of those may be called as a detail is."""
    names = [name for name, _ in rows]
    return dict(rows[names.index(_DETAILS) + 1 :]) if _DETAILS in names else {}
