"""What listeners are told, from a version that was just committed or from the writers' state of epochs in the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import lru_cache, partial

from lakecommit import schema as schemas
from lakecommit.concurrency.parallel import in_parallel
from lakecommit.formats.plan import WritePlan
from lakecommit.listening.api import CommittedSnapshot, Partition
from lakecommit.listening.places import BEFORE_ALL
from lakecommit.model import DataFile, Epoch, Pending, QueryId, Seal, Totals
from lakecommit.progress.observer import Snapshot
from lakecommit.restarting.replay import WINDOW_FILES
from lakecommit.schema import Field
from lakecommit.state.chain import Link, chained
from lakecommit.state.stored import ManifestMissing, ReadState, find_seal, list_sealed_epochs, read_pending
from lakecommit.writing.partitions import directory_of

EPOCHS_PER_EVENT = 1000
_BEGINNING = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Gone(Exception):
    """The manifests of some `epochs` are not there any more, though their seals still are: they are being released."""

    def __init__(self, epochs: Set[Epoch]) -> None:
        super().__init__(f"epochs {sorted(epochs)}")
        self.epochs = epochs


@dataclass(frozen=True, slots=True)
class Teller:
    """What is the same for all that is told of a table."""

    table: str
    mark_success: Callable[[Iterable[str]], None]

    def committed(self, snapshot: Snapshot) -> CommittedSnapshot:
        """One query's part of a version that was just committed."""
        part = snapshot.part
        totals = sum((seal.totals for seal in part.epochs), Totals())
        first, last = part.epochs[0], part.epochs[-1]
        return self._event(snapshot.version, part.query, first.epoch, last.epoch, totals, last.watermark_us, part.files)

    async def stored(
        self, store: ReadState, query: QueryId, links: Sequence[Link], version: int
    ) -> CommittedSnapshot | None:
        """The first of `links`, as many as follow one another and are few enough, from seals and manifests.

        None where another seal is in the place of one of them: what counts has to be looked up again. Raises `Gone`.
        """
        run = [link for n, link in enumerate(links[:EPOCHS_PER_EVENT]) if link.epoch == links[0].epoch + n]
        found = await in_parallel(lambda link: find_seal(store, query, link.epoch), run)
        if any(each is None or each.digest != link.digest for each, link in zip(found, run, strict=True)):
            return None
        seals = _few([each.seal for each in found if each is not None])
        winners = [replace(seal, winners=(winner,)) for seal in seals for winner in seal.winners if winner.manifests]
        found_files = await in_parallel(partial(_find_pending, store), winners)
        gone = {each.epoch for each in found_files if isinstance(each, ManifestMissing)}
        if gone:
            raise Gone(gone)
        files = [each for each in found_files if isinstance(each, Pending)]
        totals = sum((seal.totals for seal in seals), Totals())
        first, last = seals[0], seals[-1]
        return self._event(version, query, first.epoch, last.epoch, totals, last.watermark_us, files)

    def _event(
        self,
        version: int,
        query: QueryId,
        first: Epoch,
        last: Epoch,
        totals: Totals,
        watermark_us: int | None,
        files: Iterable[Pending],
    ) -> CommittedSnapshot:
        return CommittedSnapshot(
            table=self.table,
            version=version,
            query=query,
            first_epoch=first,
            last_epoch=last,
            files=totals.files,
            rows=totals.rows,
            size_bytes=totals.size_bytes,
            watermark=None if watermark_us is None else moment(watermark_us),
            partitions=_partitions(files),
            mark_success=self.mark_success,
        )


@dataclass(frozen=True, slots=True)
class CountedEpochs:
    """The epochs of a query, after some other and up to `end`, that are in the table and have a seal."""

    end: Epoch = BEFORE_ALL
    links: tuple[Link, ...] = ()


async def counted(store: ReadState, query: QueryId, after: Epoch, end: Epoch) -> CountedEpochs:
    """The seals that count after `after` and up to `end`, which the own mark has reached.

    At or before the mark a seal counts only if the newest one leads to it.
    """
    epochs = await list_sealed_epochs(store, query, None if after < 0 else after)
    links = [link for link in await in_parallel(partial(_link, store, query), epochs) if link is not None]
    reached = chained(links)
    return CountedEpochs(end, tuple(link for link in links if link.epoch in reached and link.epoch <= end))


def moment(micros: int) -> datetime:
    """A moment in UTC, or the nearest one that a `datetime` can be."""
    try:
        return _BEGINNING + timedelta(microseconds=micros)
    except OverflowError:
        return (datetime.max if micros > 0 else datetime.min).replace(tzinfo=timezone.utc)


async def _find_pending(store: ReadState, seal: Seal) -> Pending | ManifestMissing:
    try:
        return await read_pending(store, seal)
    except ManifestMissing as missing:
        return missing


async def _link(store: ReadState, query: QueryId, epoch: Epoch) -> Link | None:
    """None where it went away since it was listed."""
    stored = await find_seal(store, query, epoch)
    return None if stored is None else stored.link


def _few(seals: Sequence[Seal]) -> Sequence[Seal]:
    """The first ones whose files may be in memory together, at least one."""
    files = 0
    for number, seal in enumerate(seals):
        files += seal.totals.files
        if number and files > WINDOW_FILES:
            return seals[:number]
    return seals


def _partitions(files: Iterable[Pending]) -> tuple[Partition, ...]:
    found: dict[str, Partition] = {}
    for pending in files:
        for file in pending.files:
            directory = _directory(file, pending.plan)
            if directory and directory not in found:
                names = _names(pending.plan or "")
                values = {names.get(name, name): value for name, value in file.partition_values.items()}
                found[directory] = Partition(values, directory)
    return tuple(found.values())


def _directory(file: DataFile, plan: str | None) -> str:
    """Of files with a random prefix the one that they would have without it."""
    fields = None if plan is None else _spread(plan)
    if fields is None:
        return file.path.rpartition("/")[0]
    return directory_of(fields, tuple(file.partition_values[field.physical_name] for field in fields)).rstrip("/")


@lru_cache(maxsize=16)
def _spread(plan: str) -> tuple[Field, ...] | None:
    """The partition columns of a plan by which files are not in directories of their values; None where they are."""
    found = WritePlan.from_json(plan)
    if not found.random_prefix:
        return None
    columns = {field.name: field for field in schemas.parse(found.schema).fields}
    return tuple(columns[name] for name in found.partition_columns)


@lru_cache(maxsize=16)
def _names(plan: str) -> Mapping[str, str]:
    """The names of the top-level columns of a plan by their physical names."""
    fields = schemas.parse(WritePlan.from_json(plan).schema).fields if plan else ()
    return {field.physical_name: field.name for field in fields}
