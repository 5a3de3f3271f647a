"""The options of a write, checked against their declarations.

Spark hands over names in lower case, so they are matched without regard to case and reported as they are declared.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakecommit.errors import InvalidInput
from lakecommit.formats.delta.properties import table_properties
from lakecommit.option_declarations import (
    DECLARATIONS,
    DELTA_TXN_SETTINGS,
    LATER,
    PROPERTY_PREFIX,
    SESSION_PREFIX,
    SPARK,
    STORE_PREFIX,
    Applies,
    Declaration,
    markdown,
)


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for, checked. `partition_by` is None where the user did not say.

    `max_records_per_file` of 0 means no limit. `event_time_column` is spelled as the user did, in any case.
    `table_properties` keep the names that Spark handed over.
    """

    path: str
    partition_by: tuple[str, ...] | None
    table_format: str
    target_file_size_bytes: int
    max_records_per_file: int
    compression: str
    txn_app_id: str | None
    txn_version: int | None
    user_metadata: str | None
    accept_table_id: str | None
    commit_wait_ms: int
    max_pending_epochs: int
    max_pending_files: int
    max_pending_bytes: int
    backlog_interval_ms: int
    event_time_column: str | None
    watermark_delay_ms: int
    committer_memory_bytes: int
    table_properties: Mapping[str, str]
    # Never shown: credentials are among them.
    store_options: Mapping[str, str] = field(repr=False)


def parse_options(raw: Mapping[str, str], *, streaming: bool, defaults: Mapping[str, str] | None = None) -> Options:
    """Checks the options of one write and fills in the defaults.

    `defaults` are the session's `spark.lakecommit.<option>` settings without that prefix, and `DELTA_TXN_SETTINGS`
    under their whole names; those that do not apply to this kind of write are passed over. Raises `InvalidInput` for an
    option that is unknown, not available, written for the other kind of write, out of bounds or contradicted by
    another.
    """
    given = _sorted_out(raw, "")
    session = defaults or {}
    preset = _sorted_out({key: session[key] for key in session if key not in DELTA_TXN_SETTINGS}, SESSION_PREFIX)
    if "path" in preset.own:
        raise InvalidInput(f"{SESSION_PREFIX}path would send every write to one table; unset it and name the table")
    for name in given.own:
        if not _applies(name, streaming):
            raise InvalidInput(
                f"option {name} is for batch writes, and a stream keeps its progress under its query id; leave it out"
                if streaming
                else f"option {name} is for streams; leave it out of a batch write"
            )
    texts = {name: text for name, text in preset.own.items() if _applies(name, streaming)}
    texts |= given.own
    if not streaming and texts.keys().isdisjoint(DELTA_TXN_SETTINGS.values()):
        texts |= _delta_txn(session)
    values = {
        each.name: _value(each, texts[each.name]) if each.name in texts else each.default for each in DECLARATIONS
    }
    properties = preset.properties | given.properties
    _refuse_contradictions(values, properties, given.own)
    return Options(
        path=values["path"],
        partition_by=values["partitionBy"],
        table_format=values["tableFormat"],
        target_file_size_bytes=values["targetFileSize"],
        max_records_per_file=values["maxRecordsPerFile"],
        compression=values["compression"],
        txn_app_id=values["txnAppId"],
        txn_version=values["txnVersion"],
        user_metadata=values["userMetadata"],
        accept_table_id=values["acceptTableId"],
        commit_wait_ms=values["commitWait"],
        max_pending_epochs=values["maxPendingEpochs"],
        max_pending_files=values["maxPendingFiles"],
        max_pending_bytes=values["maxPendingBytes"],
        backlog_interval_ms=values["backlogInterval"],
        event_time_column=values["eventTimeColumn"],
        watermark_delay_ms=values["watermarkDelay"],
        committer_memory_bytes=values["committerMemory"],
        table_properties=properties,
        store_options=preset.store | given.store,
    )


def txn_options(options: Options) -> dict[str, str]:
    """The options that name the transaction of a batch write, wherever it came from; none where it has none."""
    if options.txn_app_id is None:
        return {}
    return {"txnAppId": options.txn_app_id, "txnVersion": str(options.txn_version)}


@dataclass(slots=True)
class _Sorted:
    """Options by kind: declared ones under their declared names, the others without their prefix and in lower case."""

    own: dict[str, str] = field(default_factory=dict)
    store: dict[str, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)


def _sorted_out(raw: Mapping[str, str], prefix: str) -> _Sorted:
    """`prefix` is what the user wrote before the name, for messages."""
    found = _Sorted()
    seen: dict[str, str] = {}
    for given, text in raw.items():
        key = given.lower()
        if seen.setdefault(key, text) != text:
            raise InvalidInput(f"option {prefix}{given} is given twice, with different values; leave one out")
        if key.startswith(STORE_PREFIX) and key != STORE_PREFIX:
            found.store[key.removeprefix(STORE_PREFIX)] = text
        elif key.startswith(PROPERTY_PREFIX) and key != PROPERTY_PREFIX:
            found.properties[key] = text
        elif key in _BY_LOWER:
            found.own[_BY_LOWER[key]] = text
        elif key in _LATER_BY_LOWER:
            name = _LATER_BY_LOWER[key]
            raise InvalidInput(f"option {prefix}{name} is not available in this version of lakecommit; {LATER[name]}")
        elif key not in _SPARK_BY_LOWER:
            raise _unknown(prefix, given)
    return found


def _delta_txn(session: Mapping[str, str]) -> dict[str, str]:
    """The transaction that Delta's settings of the session name, for a write that names none itself."""
    found = {key: session[key] for key in DELTA_TXN_SETTINGS if key in session}
    if len(found) == 1:
        (alone,), (missing,) = found, DELTA_TXN_SETTINGS.keys() - found.keys()
        raise InvalidInput(f"the session sets {alone} and not {missing}; set both or unset both")
    return {DELTA_TXN_SETTINGS[key]: text for key, text in found.items()}


def _value(declared: Declaration, text: str) -> Any:
    try:
        return declared.read(text)
    except ValueError:
        raise InvalidInput(f"option {declared.name} is {text[:100]!r}, but has to be {declared.values}") from None


def _refuse_contradictions(values: Mapping[str, Any], properties: Mapping[str, str], given: Mapping[str, str]) -> None:
    if values["path"] is None:
        raise InvalidInput(
            'the write names no table; name it in save("s3://bucket/table"), start("s3://bucket/table") or option path'
        )
    if (values["txnAppId"] is None) != (values["txnVersion"] is None):
        missing = "txnAppId" if values["txnAppId"] is None else "txnVersion"
        raise InvalidInput(f"options txnAppId and txnVersion only work together; give {missing}, too")
    # A session's default delay is for those of its queries that have event times.
    if "watermarkDelay" in given and values["eventTimeColumn"] is None:
        raise InvalidInput(
            "option watermarkDelay only works with eventTimeColumn; name the column that holds the event time, too, "
            "or leave watermarkDelay out"
        )
    # Raises where Delta has no such property, before anything is opened or written.
    table_properties(properties)


def _unknown(prefix: str, given: str) -> InvalidInput:
    known = _BY_LOWER | _LATER_BY_LOWER | _SPARK_BY_LOWER
    near = difflib.get_close_matches(given.lower(), known, n=1, cutoff=0.6)
    if near:
        return InvalidInput(f"option {prefix}{given} is unknown; did you mean {prefix}{known[near[0]]}?")
    names = ", ".join(each.name for each in DECLARATIONS)
    return InvalidInput(
        f"option {prefix}{given} is unknown; there are {names}, {STORE_PREFIX}<key> and delta.<property>"
    )


def _applies(name: str, streaming: bool) -> bool:
    return _DECLARED[name].applies in (Applies.BOTH, Applies.STREAM if streaming else Applies.BATCH)


_DECLARED = {each.name: each for each in DECLARATIONS}
_BY_LOWER = {each.name.lower(): each.name for each in DECLARATIONS}
_LATER_BY_LOWER = {name.lower(): name for name in LATER}
_SPARK_BY_LOWER = {name.lower(): name for name in SPARK}


if __name__ == "__main__":
    print(markdown(), end="")
