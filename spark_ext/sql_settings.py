"""What the session says about the meaning of SQL, as a task sees it."""

from __future__ import annotations

import os
from collections.abc import Callable

from lakecommit.errors import UnsupportedTable
from lakecommit.expressions.bound import Session

# Settings that change what an expression means, with the one value that it is evaluated for, which is the default.
_EXPECTED = {
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.timestampType": "timestamp_ltz",
    "spark.sql.icu.caseMappings.enabled": "true",
}


def sql_session(
    get: Callable[[str], str | None],
    *,
    evaluates: bool,
    what: str = "the table has constraints, generated columns or defaults",
) -> Session:
    """`get` gives what the session sets, None for what it leaves at Spark's default.

    That default of the time zone is the driver's own, which a task is not told: it comes with the rows. With
    `evaluates`, raises `UnsupportedTable` for a setting with which expressions mean something else; `what` has them.
    """
    for name, expected in _EXPECTED.items():
        value = get(name) if evaluates else None
        if value is not None and value.lower() != expected:
            raise UnsupportedTable(
                f"{what}, which is not evaluated here with {name}={value}; set it to {expected}, or use delta-spark"
            )
    # As Spark has it where nobody says otherwise.
    ansi = get("spark.sql.ansi.enabled") or os.environ.get("SPARK_ANSI_SQL_MODE") or "true"
    sensitive = get("spark.sql.caseSensitive") or "false"
    return Session(
        ansi=ansi.lower() != "false", zone=get("spark.sql.session.timeZone"), case_sensitive=sensitive.lower() == "true"
    )
