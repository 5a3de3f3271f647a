"""The offsets of a running query's sources, read through py4j from Spark's own notes; no source is asked anything.

The classes behind it are internal to Spark. Whatever fails here costs a check or the pace of commits, and no data, so
it is only logged.
"""

from __future__ import annotations

import bisect
import hashlib
import json
import logging
import re
from typing import Any

from pyspark.sql import SparkSession

from lakecommit.model import Epoch, QueryId
from lakecommit.progress.backlog import NOT_KNOWN, EpochOffsets

_FILE_SOURCE = "FileStreamSource"
_LOG_OFFSET = re.compile(r'\{"logOffset":([0-9]+)\}')
_FILES_PER_EPOCH = "ReadMaxFiles"
_SEPARATOR = "\x01"
_log = logging.getLogger("lakecommit.spark_ext")


def entries(scala_map: Any) -> dict[str, str]:
    """A map of strings. As one string: py4j takes a call for each entry."""
    text = scala_map.mkString(_SEPARATOR)
    pairs = (entry.partition(" -> ") for entry in text.split(_SEPARATOR) if entry)
    return {key: value for key, _, value in pairs}


def field_of(instance: Any, name: str) -> Any:
    """What is private to an object of the JVM."""
    field = instance.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(instance)


def epoch_offsets(spark: SparkSession, query: QueryId, epoch: Epoch, *, with_latest: bool) -> EpochOffsets:
    """The offsets of the epoch that the query is in."""
    try:
        running = spark.streams.get(query)
        if running is None:
            return NOT_KNOWN
        execution = running._jsq.streamingQuery()
        entry = execution.offsetLog().get(int(epoch))
        if entry.isEmpty():
            return NOT_KNOWN
        offsets = entry.get().offsets()
        planned = tuple(_text(offsets.apply(index)) for index in range(offsets.length()))
        fingerprint = _fingerprint(spark, execution, planned)
    except Exception as error:
        _log.info("the planned offsets of query %s cannot be read: %s", query, type(error).__name__)
        return NOT_KNOWN
    if not with_latest:
        return EpochOffsets(fingerprint, planned)
    try:
        return EpochOffsets(fingerprint, planned, _latest(execution, epoch, planned))
    except Exception as error:
        _log.info("the latest offsets of the sources of query %s cannot be read: %s", query, type(error).__name__)
        return EpochOffsets(fingerprint, planned, ())


def _text(offset: Any) -> str | None:
    """The JSON of an offset that is an Option."""
    return offset.get().json() if offset.isDefined() else None


def _fingerprint(spark: SparkSession, execution: Any, planned: tuple[str | None, ...]) -> str:
    texts = list(planned)
    for index, text in enumerate(planned):
        number = _log_offset(text)
        if number is not None:
            texts.append(_file_source_entry(spark, execution.resolvedCheckpointRoot(), index, number))
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


def _log_offset(offset: str | None) -> int | None:
    """The number that is all that a file source has for an offset: which files it means is in the source's own log."""
    found = _LOG_OFFSET.fullmatch(offset or "")
    return int(found[1]) if found else None


def _file_source_entry(spark: SparkSession, checkpoint: str, source: int, number: int) -> str | None:
    """What a file source wrote down as its files for an offset, in the query's checkpoint."""
    jvm, settings = spark._jvm, spark._jsparkSession.sessionState().newHadoopConf()
    assert jvm is not None
    path = jvm.org.apache.hadoop.fs.Path(f"{checkpoint}/sources/{source}/{number}")
    files = path.getFileSystem(settings)
    # Every tenth entry or so is written together with all before it, under another name: that one grows with the
    # source's history, so that it is not read, and those epochs are known by their number alone.
    if not files.exists(path):
        return None
    stream = files.open(path)
    try:
        return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()


def _latest(execution: Any, epoch: Epoch, planned: tuple[str | None, ...]) -> tuple[str | None, ...] | None:
    """What each source had when the epoch was planned, as Spark keeps it for the query's progress.

    None where the run before planned the epoch: then this run has not looked at the sources yet.
    """
    context = execution.getLatestExecutionContext()
    if context.batchId() != int(epoch):
        return ()
    if context.offsetSeqMetadata().batchTimestampMs() < context.getStartTime():
        return None
    reported, limits, sources = context.latestOffsets(), execution.uniqueSources(), execution.sources()
    latest: list[str | None] = []
    for index, end in enumerate(planned):
        source = sources.apply(index)
        limit = limits.get(source)
        if limit.isEmpty():
            # Spark has put a wrapper in its place that reads all there is in one epoch, because the source does not
            # know availableNow by itself. What it reports is newer than what this run will read.
            latest.append(None)
        elif source.getClass().getSimpleName() == _FILE_SOURCE:
            latest.append(_file_source_latest(source, limit.get(), end))
        else:
            latest.append(_text(reported.get(source)))
    return tuple(latest)


def _file_source_latest(source: Any, limit: Any, planned: str | None) -> str | None:
    """The offset that a file source is at when it has read the files that it knows of; it reports none itself.

    Each epoch takes as many files as `maxFilesPerTrigger` says and adds one to the offset. With another limit, or none,
    the planned offset is all that is known to come.
    """
    number = _log_offset(planned)
    if number is None or limit.getClass().getSimpleName() != _FILES_PER_EPOCH:
        return planned
    return json.dumps({"logOffset": number - (-_files_ahead(source) // limit.maxFiles())})


def _files_ahead(source: Any) -> int:
    """How many files a file source has listed and not planned yet; rather too few than too many.

    With availableNow it has one list for the whole run, oldest first, in which files that are too old count for
    nothing. What it has seen may be gone from the list, so that more than the difference may be ahead. Without, it
    keeps the rest of its last listing: at most `maxCachedFiles`, and nothing where that is little or `latestFirst`.
    """
    listed = field_of(source, "allFilesForTriggerAvailableNow")
    if listed is None:
        unread = field_of(source, "unreadFiles")
        return 0 if unread is None else int(unread.size())
    seen, count = source.seenFiles(), int(listed.size())
    too_old = bisect.bisect_left(
        range(count), field_of(seen, "lastPurgeTimestamp"), key=lambda index: listed.apply(index).timestamp()
    )
    return max(0, count - too_old - int(seen.size()))
