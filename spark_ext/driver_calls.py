"""What Spark leaves out for a Python data source, done right before `save()` and `start()`, where they are called.

Tables by name are among that: `saveAsTable("db.orders")` is `save()` with the location of the table, and `toTable(…)`
is `start()` with it; the session's catalog says where that is.

Spark drops the columns of `writeStream.partitionBy(…)` and refuses those of `write.partitionBy(…)`, and so it does with
those of `clusterBy(…)`. Of a stream that cannot run it tells after the start, or only in its log. And pyspark puts a
line of its own before what a task of a batch write says. And a session that wants schemas merged has to say so in each
write. And it asks for the files of what a write reads before it asks for the writer: rows that others add in between
would be replaced unread.

So `register` wraps these methods of pyspark, once in a process: those of classic sessions in `classic_calls`, those
of Spark Connect in `connect_calls`. Calls with another format go on as they are. Columns, trigger and mode are known to
Spark's own writers alone, which are internal: if they cannot be read, the call goes on unchanged.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from lakecommit.errors import InvalidInput, LakecommitError
from lakecommit.formats.registry import DEFAULT, NAMES, format_named
from lakecommit.options.declarations import SESSION_PREFIX
from lakecommit.spark_ext.source import LakecommitDataSource
from lakecommit.spark_ext.tables_by_name import check_sql, location_of
from lakecommit.spark_ext.writers import LOCATION_OF, VERSION_AT_SAVE

T = TypeVar("T")

_MERGING = "mergeSchema"
_FORMAT = "tableFormat"
_PARTITIONS = "partitionBy"
_CLUSTERING = "clusterBy"
_READ_VERSION = "readversion"
# The attribute of a writer that has what it was told by us.
_TOLD = "_lakecommit_told"

OWN_ERRORS = "lakecommit."
# What `save` and `start` take and set by themselves, too late for us.
_SETTERS = ("format", "partitionBy", "outputMode")
_log = logging.getLogger("lakecommit.spark_ext")


@dataclass(frozen=True, slots=True)
class WriterCall:
    """A call of `save()` or `start()` as it was meant, with `options` by their names in lower case. `continuous` and
    `update` are of streams alone, `overwrite` and `bucketed_by` of batch writes."""

    streaming: bool
    options: Mapping[str, str]
    partitioned_by: tuple[str, ...] = ()
    clustered_by: tuple[str, ...] = ()
    bucketed_by: tuple[str, ...] = ()
    continuous: bool = False
    update: bool = False
    overwrite: bool = False


class Writers(Protocol):
    """How writers of one class of pyspark's are read and called."""

    def source(self, writer: Any) -> str | None:
        """The format that the writer was given."""

    def call(self, writer: Any) -> WriterCall:
        """What the writer was told before this call."""

    def session(self, writer: Any) -> Any:
        """The Spark session that the writer is of."""

    def newest_version(self, writer: Any, options: Mapping[str, str]) -> int | None:
        """The version of the table that a write with `options` would find; None where nobody here can tell."""

    def uncluster(self, writer: Any) -> None:
        """Takes back the clustering columns of a batch writer, which Spark would refuse."""

    def calling(self, writer: Any) -> AbstractContextManager[None]:
        """Around the call: it finds the data source, and the first line of what it raises is ours."""


def wrap(writer: type, to_location: str, to_table: str, writers: Writers) -> None:
    """Afterwards these methods of the writer, which write to a location and to a table by name, do what Spark leaves
    out. Again is harmless."""
    _replace(writer, to_location, lambda method: _wrapped(method, writers))
    _replace(writer, to_table, lambda method: _wrapped_by_name(method, to_location, writers))


def refuse_other_ways(session: type, writer: type, writer_v2: type, writers: Writers) -> None:
    """Afterwards other ways to name a table, in which Spark would not write with lakecommit, end in one sentence."""

    def check_insert(called: Any, table: str) -> None:
        if _is_ours(_read(writers.source, called)):
            raise InvalidInput(
                f'insertInto("{table}") takes columns by their place and is not available with format("lakecommit"); '
                f'use saveAsTable("{table}"), which takes them by their names'
            )

    def check_provider(_: Any, provider: str) -> None:
        if _is_ours(provider):
            raise InvalidInput(
                'writeTo(…).using("lakecommit") is not available: Spark would not write with lakecommit; use '
                'write.format("lakecommit") with saveAsTable, or with a location'
            )

    _replace(session, "sql", lambda method: _checked(method, lambda _, text: check_sql(text)))
    _replace(writer, "insertInto", lambda method: _checked(method, check_insert))
    _replace(writer_v2, "using", lambda method: _checked(method, check_provider))


def check(call: WriterCall) -> None:
    """Raises `InvalidInput` for what could only fail later, or would be dropped without a word."""
    if call.bucketed_by:
        raise InvalidInput(
            f'bucketBy({", ".join(call.bucketed_by)}) is not available with format("lakecommit"): Delta tables have no '
            "buckets; leave it out, and sortBy, too, or use partitionBy"
        )
    for name, columns in ((_PARTITIONS, call.partitioned_by), (_CLUSTERING, call.clustered_by)):
        if columns and name.lower() in call.options:
            raise InvalidInput(f"both {name}({', '.join(columns)}) and the option {name} are given; leave one out")
    if call.partitioned_by and call.clustered_by:
        raise InvalidInput(
            f"both partitionBy({', '.join(call.partitioned_by)}) and clusterBy({', '.join(call.clustered_by)}) are "
            "given, and a table is one or the other; leave one out"
        )
    if "table" in call.options and "path" in call.options:
        raise _twice_named(call.options["table"])
    if not call.streaming:
        return
    if "path" not in call.options and "table" not in call.options:
        raise InvalidInput(
            "the stream has no location to write to; give it to start(), or as the option path, or name a table in "
            "toTable()"
        )
    if call.update:
        raise InvalidInput(
            'outputMode("update") is not available with format("lakecommit"), which changes no rows; use '
            'outputMode("append"), or foreachBatch with a MERGE of your own'
        )
    if call.continuous:
        raise InvalidInput(
            'a continuous trigger is not available with format("lakecommit"); use a micro-batch trigger, such as '
            'trigger(processingTime="1 second")'
        )


def merging(spark: Any, options: Mapping[str, str]) -> dict[str, str]:
    """What a write says of merging schemas where the session asks one of the formats for it: else extensions of Spark
    take every write for one of theirs, and Spark fails on it. Of another format than the one written it is no wish."""
    asking = {
        name: [key for key, option in format_named(name).session_defaults.items() if option == _MERGING]
        for name in NAMES
    }
    asked = {
        name for name, keys in asking.items() if any(spark.conf.get(key, "false").lower() == "true" for key in keys)
    }
    if not asked:
        return {}
    named = options.get(_FORMAT.lower()) or spark.conf.get(SESSION_PREFIX + _FORMAT, DEFAULT)
    return {_MERGING: spark.conf.get(SESSION_PREFIX + _MERGING, "true" if named.lower() in asked else "false")}


def by_name(options: Mapping[str, Any]) -> dict[str, str]:
    """Options by name, as Spark compares them."""
    return {name.lower(): str(value) for name, value in options.items() if value is not None}


def _replace(owner: type, name: str, wrapped: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    method = getattr(owner, name)
    if not hasattr(method, "__wrapped__"):
        setattr(owner, name, wrapped(method))


def _wrapped(method: Callable[..., Any], writers: Writers) -> Callable[..., Any]:
    signature = inspect.signature(method)

    @functools.wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = signature.bind(self, *args, **kwargs)
        if not _is_ours(given.arguments.get("format") or _read(writers.source, self)):
            return method(self, *args, **kwargs)
        for name in _SETTERS:
            value = given.arguments.pop(name, None)
            if value is not None:
                getattr(self, name)(value)
        call = _read(writers.call, self)
        if call is not None:
            # Options stay with a writer, which may be used again: those that an earlier call has told it are nobody's.
            told = getattr(self, _TOLD, {})
            call = replace(call, options={name: each for name, each in call.options.items() if told.get(name) != each})
            call = _with_arguments(call, given.arguments)
            check(call)
            spark = writers.session(self)
            if "table" in call.options:
                given.arguments["path"] = location_of(spark, call.options["table"])
                call = _with_arguments(call, given.arguments)
            _tell(self, {**_undone(told), **_left_out(self, call, spark, writers)})
            if call.partitioned_by:
                self.partitionBy()
            if call.clustered_by:
                writers.uncluster(self)
        with writers.calling(self):
            return method(*given.args, **given.kwargs)

    return called


def _wrapped_by_name(method: Callable[..., Any], to_location: str, writers: Writers) -> Callable[..., Any]:
    signature = inspect.signature(method)

    @functools.wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = signature.bind(self, *args, **kwargs)
        if not _is_ours(given.arguments.get("format") or _read(writers.source, self)):
            return method(self, *args, **kwargs)
        # But for the name, the other method has the same arguments.
        _, (_, table), *others = given.arguments.items()
        arguments = dict(others)
        options = arguments.pop("options", {})
        call = _read(writers.call, self)
        known = {} if call is None else call.options
        location = location_of(writers.session(self), table or "")
        if {**known, **by_name(options)}.get("path", location) != location:
            raise _twice_named(table)
        return getattr(self, to_location)(**{**options, **arguments, "path": location})

    return called


def _left_out(writer: Any, call: WriterCall, spark: Any, writers: Writers) -> dict[str, str]:
    """What Spark leaves out of a call, as options."""
    found = {
        name: value
        for name, value in (_read(merging, spark, call.options) or {}).items()
        if name.lower() not in call.options
    }
    asked = call.overwrite and _READ_VERSION not in call.options
    version = _read(writers.newest_version, writer, call.options) if asked else None
    if version is not None:
        found[VERSION_AT_SAVE] = str(version)
    if "table" in call.options:
        found[LOCATION_OF] = call.options["table"]
    if call.partitioned_by:
        found[_PARTITIONS] = ",".join(map(_quoted, call.partitioned_by))
    if call.clustered_by:
        # Spark takes a dot in them for a step into a struct, and backticks for a name, as the option does.
        found[_CLUSTERING] = ",".join(call.clustered_by)
    return found


def _undone(told: Mapping[str, str]) -> dict[str, str]:
    """What takes back that which an earlier call has told; the columns of a writer stay, as in Spark."""
    nothing = {_MERGING: "false", VERSION_AT_SAVE: "", LOCATION_OF: ""}
    return {name: value for name, value in nothing.items() if name.lower() in told}


def _tell(writer: Any, options: Mapping[str, str]) -> None:
    for name, value in options.items():
        writer.option(name, value)
    if options:
        setattr(writer, _TOLD, {**getattr(writer, _TOLD, {}), **by_name(options)})


def _twice_named(table: str) -> InvalidInput:
    return InvalidInput(f"both a table's name, {table}, and a location are given; leave one out")


def _checked(method: Callable[..., Any], check: Callable[[Any, Any], None]) -> Callable[..., Any]:
    """The method with a check of its first argument before it."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        check(self, signature.bind(self, *args, **kwargs).args[1])
        return method(self, *args, **kwargs)

    return called


def _is_ours(source: Any) -> bool:
    return isinstance(source, str) and source.lower() == LakecommitDataSource.name()


def _with_arguments(call: WriterCall, arguments: Mapping[str, Any]) -> WriterCall:
    given = {**arguments.get("options", {}), "path": arguments.get("path")}
    overwrite = arguments["mode"].lower() == "overwrite" if arguments.get("mode") else call.overwrite
    return replace(call, options={**call.options, **by_name(given)}, overwrite=overwrite)


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _read(reader: Callable[..., T], *arguments: Any) -> T | None:
    try:
        return reader(*arguments)
    except LakecommitError:
        # The write would meet it, too.
        raise
    except Exception as error:
        _log.info(
            "the settings of a Spark writer cannot be read, so that lakecommit does not check them: %s",
            type(error).__name__,
        )
        return None
