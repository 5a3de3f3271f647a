"""What Spark leaves out for a Python data source, done right before `save()` and `start()`, where they are called.

Spark drops the columns of `writeStream.partitionBy(…)` and refuses those of `write.partitionBy(…)`. Of a stream that
cannot run it tells after the start, or only in its log. And pyspark puts a line of its own before what a task of a
batch write says. And a session that wants schemas merged has to say so in each write.

So `register` wraps these two methods of pyspark, once in a process: those of classic sessions in `classic_calls`, those
of Spark Connect in `connect_calls`. Calls with another format go on as they are. Columns, trigger and mode are known to
Spark's own writers alone, which are internal: if they cannot be read, the call goes on unchanged.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from lakecommit.errors import InvalidInput
from lakecommit.formats.registry import NAMES, format_named
from lakecommit.spark_ext.source import LakecommitDataSource

T = TypeVar("T")

_MERGING = "mergeSchema"

OWN_ERRORS = "lakecommit."
# What `save` and `start` take and set by themselves, too late for us.
_SETTERS = ("format", "partitionBy", "outputMode")
_log = logging.getLogger("lakecommit.spark_ext")


@dataclass(frozen=True, slots=True)
class WriterCall:
    """A call of `save()` or `start()` as it was meant. `continuous` and `update` are of streams alone."""

    streaming: bool
    options: frozenset[str]
    partitioned_by: tuple[str, ...] = ()
    clustered_by: tuple[str, ...] = ()
    continuous: bool = False
    update: bool = False


class Writers(Protocol):
    """How writers of one class of pyspark's are read and called."""

    def source(self, writer: Any) -> str | None:
        """The format that the writer was given."""

    def call(self, writer: Any) -> WriterCall:
        """What the writer was told before this call."""

    def asked_by_session(self, writer: Any) -> Mapping[str, str]:
        """Options that the writer's session stands for, and that Spark has to see in the write itself."""

    def calling(self, writer: Any) -> AbstractContextManager[None]:
        """Around the call: it finds the data source, and the first line of what it raises is ours."""


def wrap(writer: type, name: str, writers: Writers) -> None:
    """Afterwards this method of the writer does what Spark leaves out. Again is harmless."""
    method = getattr(writer, name)
    if not hasattr(method, "__wrapped__"):
        setattr(writer, name, _wrapped(method, writers))


def check(call: WriterCall) -> None:
    """Raises `InvalidInput` for what could only fail later, or would be dropped without a word."""
    if call.clustered_by:
        raise InvalidInput(
            f'clusterBy({", ".join(call.clustered_by)}) is not available with format("lakecommit"): it cannot make '
            "clustered tables; leave it out, or use partitionBy"
        )
    if call.partitioned_by and "partitionby" in call.options:
        raise InvalidInput(
            f"both partitionBy({', '.join(call.partitioned_by)}) and the option partitionBy are given; leave one out"
        )
    if not call.streaming:
        return
    if "path" not in call.options:
        raise InvalidInput("the stream has no location to write to; give it to start(), or as the option path")
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


def merging(spark: Any) -> dict[str, str]:
    """The option for a session that wants schemas merged: else extensions of Spark take every write for one of theirs,
    and Spark fails on it."""
    settings = (format_named(name).session_defaults for name in NAMES)
    keys = [key for each in settings for key, option in each.items() if option == _MERGING]
    return {_MERGING: "true"} if any(str(spark.conf.get(key, "false")).lower() == "true" for key in keys) else {}


def names(options: Iterable[str]) -> frozenset[str]:
    """Options by name, as Spark compares them."""
    return frozenset(name.lower() for name in options)


def _wrapped(method: Callable[..., Any], writers: Writers) -> Callable[..., Any]:
    signature = inspect.signature(method)

    @functools.wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = signature.bind(self, *args, **kwargs)
        source = given.arguments.get("format") or _read(writers.source, self)
        if not isinstance(source, str) or source.lower() != LakecommitDataSource.name():
            return method(self, *args, **kwargs)
        for name in _SETTERS:
            value = given.arguments.pop(name, None)
            if value is not None:
                getattr(self, name)(value)
        call = _read(writers.call, self)
        if call is not None:
            check(_with_arguments(call, given.arguments))
            for name, value in (_read(writers.asked_by_session, self) or {}).items():
                if name.lower() not in call.options:
                    self.option(name, value)
            if call.partitioned_by:
                self.option("partitionBy", ",".join(map(_quoted, call.partitioned_by)))
                self.partitionBy()
        with writers.calling(self):
            return method(*given.args, **given.kwargs)

    return called


def _with_arguments(call: WriterCall, arguments: dict[str, Any]) -> WriterCall:
    given = {*arguments.get("options", ()), *(("path",) if arguments.get("path") is not None else ())}
    return replace(call, options=call.options | names(given))


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _read(reader: Callable[..., T], *arguments: Any) -> T | None:
    try:
        return reader(*arguments)
    except Exception as error:
        _log.info(
            "the settings of a Spark writer cannot be read, so that lakecommit does not check them: %s",
            type(error).__name__,
        )
        return None
