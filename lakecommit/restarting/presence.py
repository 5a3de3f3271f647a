"""The files of pending epochs, looked for before they are committed, if it is in doubt that they are there.

A sealed file is complete, and nobody asks for it again. But nothing protects it until a version names it: whoever drops
the table may delete it, and so does every VACUUM that retains less than its age. So these are looked for first:

* what was sealed for another table than the one that is there;
* what is so old that a vacuum in the log may have taken it, or older than the oldest version that was read of the log:
  a checkpoint does not tell of vacuums;
* what has been pending for over a day, since not every vacuum is told of.

What is gone is refused by epoch; what comes before it is committed. While a vacuum that may take an epoch is under way,
the epoch waits: a file that is there may be the next to go. No epoch waits for longer than the longest vacuum: if
one has died and others follow, the log always looks as if a young one were under way.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from lakecommit.clock import Clock
from lakecommit.concurrency.parallel import in_parallel
from lakecommit.epoch_ranges import ranges
from lakecommit.errors import CommitFailed, CorruptState
from lakecommit.formats.base import TableState
from lakecommit.formats.evidence import Vacuums
from lakecommit.model import Epoch, Pending, QueryId, SealedEpoch
from lakecommit.progress.queries import Looked
from lakecommit.progress.table import CLOCKS_APART_MS
from lakecommit.storage.base import GetRange

PENDING_FOR_LONG_MS = 24 * 60 * 60 * 1000
# `lakecommit clean` takes a batch write for dead after a day and deletes its files, behind a fence that another writer
# may write over. So long before that, on whatever clock, a batch write does not rely on its files any more.
BATCH_ASLEEP_MS = 12 * 60 * 60 * 1000
# One that is under way for longer has died: it will never say that it is over.
LONGEST_VACUUM_MS = 60 * 60 * 1000
# For how long it is relied on that files were there.
LOOKED_FOR_MS = 60_000


@dataclass(frozen=True, slots=True)
class Look:
    """How many of the epochs that were asked for may be committed, and whether the next one waits for a vacuum."""

    ready: int
    waits: bool = False


class FilePresence:
    """Looks for files, and remembers for a while up to which epoch of a query it has found them.

    While a query is held it remembers since when, too.
    """

    def __init__(self, store: GetRange, location: str, clock: Clock, memory: dict[QueryId, Looked]) -> None:
        self._store, self._location, self._clock = store, location, clock
        self._memory = memory

    async def look(self, table: TableState, epochs: Sequence[SealedEpoch], staged: Sequence[Pending]) -> Look:
        """How many of `epochs`, the next ones of a query, may be committed now; `staged` are their files.

        Costs nothing where nothing is in doubt. Raises `CorruptState` if files of the first one are gone.
        """
        query, now_ms = staged[0].query, self._clock.wall_ms()
        memory = self._memory.setdefault(query, Looked())
        doubted: list[int] = []
        look = Look(len(epochs))
        for index, (epoch, files) in enumerate(zip(epochs, staged, strict=True)):
            if reason_to_look(epoch, files, table, now_ms) is None or self._was_there(memory, epoch.epoch, table):
                continue
            if is_endangered(files, table.vacuums, now_ms) and not self._was_held_for_long(memory, epoch):
                look = Look(index, waits=True)
                break
            doubted.append(index)
        if look.waits:
            memory.held = memory.held or (self._clock.boot_ms(), now_ms)
        elif not any(is_endangered(files, table.vacuums, now_ms) for files in staged):
            memory.held = None
        gone = await missing_files(self._store, [staged[index] for index in doubted])
        for index, missing in zip(doubted, gone, strict=True):
            if missing and index == 0:
                raise refusal(self._location, epochs[0], staged[0], missing, table, now_ms)
            if missing:
                return Look(index)
        if doubted:
            memory.found = (epochs[doubted[-1]].epoch, table.vacuums, self._clock.boot_ms())
        return look

    async def check_batch(self, table: TableState, files: Pending) -> None:
        """Raises `CommitFailed` if a vacuum has taken files of a batch write, or may be about to; or if the write
        slept for so long that it was cleaned up."""
        oldest_ms = min((file.created_ms for file in files.files), default=None)
        asleep = oldest_ms is not None and self._clock.wall_ms() - oldest_ms > BATCH_ASLEEP_MS
        if not asleep and vacuumed(files, table.vacuums) is None:
            return
        if is_endangered(files, table.vacuums, self._clock.wall_ms()):
            raise CommitFailed(
                f"a vacuum of {self._location} is under way that may delete what batch write {files.query} has written"
                "; nothing was committed; run the write again when it is over"
            )
        (missing,) = await missing_files(self._store, [files])
        if missing:
            raise CommitFailed(
                f"{len(missing)} of {len(files.files)} files of batch write {files.query} are gone from "
                f"{self._location}, the first is {missing[0]}: somebody's vacuum of the table, or 'lakecommit clean', "
                "took them before they were committed; nothing was committed; run the write again, without a "
                "vacuum beside it that retains less than the write takes"
            )

    def _was_there(self, memory: Looked, epoch: Epoch, table: TableState) -> bool:
        if memory.found is None:
            return False
        last, vacuums, looked_ms = memory.found
        return epoch <= last and vacuums == table.vacuums and self._clock.boot_ms() - looked_ms <= LOOKED_FOR_MS

    def _was_held_for_long(self, memory: Looked, epoch: SealedEpoch) -> bool:
        """Whether the epoch has waited for vacuums for as long as any takes. Behind a held one it waits, too."""
        if memory.held is None:
            return False
        boot_ms, wall_ms = memory.held
        sealed_later_ms = max(0, epoch.sealed_ms - wall_ms)
        return self._clock.boot_ms() - boot_ms - sealed_later_ms >= LONGEST_VACUUM_MS


def reason_to_look(epoch: SealedEpoch, files: Pending, table: TableState, now_ms: int) -> str | None:
    """Why it is in doubt that the files of a pending epoch are there; None where it is not."""
    if not files.files:
        return None
    if epoch.table_id not in ("", table.table_id):
        return f"they were written for the table with id {epoch.table_id}, but the table here has id {table.table_id}"
    if (why := vacuumed(files, table.vacuums)) is not None:
        return why
    if now_ms - epoch.sealed_ms > PENDING_FOR_LONG_MS:
        return "the epoch was pending for so long that a vacuum of the table took them"
    return None


def vacuumed(files: Pending, vacuums: Vacuums) -> str | None:
    """The same, as far as the log tells of vacuums."""
    oldest_ms = min((file.created_ms for file in files.files), default=None)
    if oldest_ms is None:
        return None
    if vacuums.before_ms is not None and oldest_ms < vacuums.before_ms + CLOCKS_APART_MS:
        return "somebody's vacuum of the table took them before they were committed"
    if vacuums.unseen_ms is not None and oldest_ms < vacuums.unseen_ms:
        return "somebody's vacuum of the table must have taken them before they were committed"
    return None


def is_endangered(files: Pending, vacuums: Vacuums, now_ms: int) -> bool:
    """Whether a vacuum is under way that may delete some of the files yet."""
    before_ms = vacuums.before_ms
    if before_ms is None or not any(now_ms - begun_ms < LONGEST_VACUUM_MS for begun_ms in vacuums.begun_ms):
        return False
    return any(file.created_ms < before_ms + CLOCKS_APART_MS for file in files.files)


async def missing_files(store: GetRange, epochs: Sequence[Pending]) -> list[list[str]]:
    """For each of `epochs` the files that are gone."""
    sizes = iter(await in_parallel(store.size, [file.path for each in epochs for file in each.files]))
    return [[file.path for file in each.files if next(sizes) is None] for each in epochs]


async def check_present(store: GetRange, location: str, epochs: Sequence[Pending]) -> None:
    """Raises `FilesGone` if files of `epochs` are gone."""
    gone = await missing_files(store, epochs)
    without = [(each, missing) for each, missing in zip(epochs, gone, strict=True) if missing]
    if without:
        why = "somebody's vacuum of the table took them before they were committed"
        raise FilesGone(location, *without[0], why, None, [each.epoch for each, _ in without[1:]])


def refusal(
    location: str, epoch: SealedEpoch, files: Pending, missing: Sequence[str], table: TableState, now_ms: int
) -> FilesGone:
    """The error for an epoch whose files are gone."""
    why = reason_to_look(epoch, files, table, now_ms) or "somebody deleted them before they were committed"
    accepted = table.table_id if epoch.table_id not in ("", table.table_id) else None
    return FilesGone(location, files, missing, why, accepted)


class FilesGone(CorruptState):
    """Files of a pending epoch are not there. `also` are later epochs of the query of which files are gone, too."""

    entry = "vacuumed-files"

    def __init__(
        self,
        location: str,
        files: Pending,
        missing: Sequence[str],
        why: str,
        accepted: str | None,
        also: Collection[Epoch] = (),
    ) -> None:
        self._told = (location, files, missing, why, accepted)
        epochs = {files.epoch, *also}
        some = f" So are files of epochs {ranges(also)}." if also else ""
        restart = "" if accepted is None else f" with the option acceptTableId={accepted}"
        super().__init__(
            f"{len(missing)} of {len(files.files)} files of epoch {files.epoch} of query {files.query} are gone from "
            f"{location}, the first is {missing[0]}: {why}.{some} What comes before is committed, and what comes after "
            "waits. Restore the files. If that is not possible, give up what is damaged with "
            f"'{discard_command(location, files.query, epochs, accepted)}' and start the query again{restart}: it goes "
            "on with the epochs that follow, and no input is read again"
        )

    def with_also(self, also: Collection[Epoch]) -> FilesGone:
        return FilesGone(*self._told, also)


def vacuum_under_way(location: str, query: QueryId, epoch: Epoch) -> CommitFailed:
    return CommitFailed(
        f"a vacuum of {location} is under way that may delete files of epoch {epoch} of query {query}; nothing was "
        "committed; try again when it is over. One that has died is waited for no longer than "
        f"{LONGEST_VACUUM_MS // 60_000} minutes"
    )


def discard_command(location: str, query: QueryId, epochs: Collection[int], accepted: str | None) -> str:
    """What to run to give up just these epochs."""
    accept = "" if accepted is None else f" --accept-table-id {accepted}"
    what = f"--query {query}{accept} --discard --epochs {ranges(epochs)} --apply"
    return f"lakecommit recover {shlex.quote(location)} {what}"


def damaged(epochs: Sequence[Pending], gone: Sequence[Sequence[str]]) -> Iterator[Epoch]:
    return (each.epoch for each, missing in zip(epochs, gone, strict=True) if missing)
