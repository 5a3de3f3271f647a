"""What a table's writers have under way: marks, seals, pending epochs, staged files. Reads only.

Order of reads: the caller has opened the table, which gives the marks; then seals, then manifests. A snapshot that
lands in between can only make an epoch look pending that is done. The table itself is never listed, and of the state
only what lies after the marks, so the cost depends on what is under way.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass

from lakecommit.errors import LakecommitError
from lakecommit.formats.base import TableState, marks_of
from lakecommit.model import Attempt, AttemptId, CommitUser, Epoch, Marks, Seal, TaskId
from lakecommit.parallel import in_parallel
from lakecommit.replay import ReadState, StoredSeal, read_seal
from lakecommit.state import codec, layout
from lakecommit.storage.base import Found, Get, List

# Sorts after every name that lakecommit gives.
_LAST = "~"


@dataclass(frozen=True, slots=True)
class StagedEpoch:
    """An epoch with files that no snapshot holds, from its manifests.

    Of a sealed epoch, the figures are those of the winners, and `lost_files` counts the files of all other attempts; of
    one without a seal (`sealed_ms` is None) they are those of all attempts. `problem` says why they are not complete.
    """

    epoch: Epoch
    sealed_ms: int | None
    attempts: int
    files: int
    rows: int
    size_bytes: int
    lost_files: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class UserStatus:
    """One commit user. `passed` are sealed epochs with rows that somebody else's sink went past.

    A user without marks and seals is either a batch write or a stream that has not sealed anything yet.
    """

    user: CommitUser
    marks: Marks
    newest_seal: Epoch | None
    pending: tuple[StagedEpoch, ...]
    passed: tuple[StagedEpoch, ...]
    unsealed: tuple[StagedEpoch, ...]

    @property
    def staged(self) -> tuple[StagedEpoch, ...]:
        return (*self.passed, *self.pending, *self.unsealed)

    @property
    def never_sealed(self) -> bool:
        return self.newest_seal is None and self.marks == Marks()


async def users_of(store: ReadState, table: TableState | None) -> list[UserStatus]:
    """Every commit user that has state below the table, ordered by name. `table` is None where there is no table."""
    return [await user_status(store, user, marks_of(table, user)) async for user in users(store)]


async def user_status(store: ReadState, user: CommitUser, marks: Marks) -> UserStatus:
    """What `user` has under way after `marks`. Damaged or missing records are reported, not raised."""
    seals, newest = await _seals_after(store, user, marks.own)
    manifests = await _manifests_after(store, user, marks.own)
    mark = max((epoch for epoch in (marks.mark, marks.own) if epoch is not None), default=-1)
    sealed = [await _sealed_epoch(store, user, epoch, manifests.get(epoch, ())) for epoch in seals]
    unsealed = [
        await _count(store, epoch, None, manifests[epoch])
        for epoch in sorted(set(manifests) - set(seals))
        if epoch > mark
    ]
    # A sealed epoch without rows needs no snapshot of its own: the next one's mark covers it.
    staged = [epoch for epoch in sealed if epoch.files or epoch.problem]
    return UserStatus(
        user=user,
        marks=marks,
        newest_seal=newest,
        pending=tuple(each for each in staged if each.epoch > mark),
        passed=tuple(each for each in staged if each.epoch <= mark),
        unsealed=tuple(unsealed),
    )


_Named = tuple[Attempt, int]


async def _sealed_epoch(store: Get, user: CommitUser, epoch: Epoch, manifests: Sequence[_Named]) -> StagedEpoch:
    try:
        stored: StoredSeal = await read_seal(store, user, epoch)
    except LakecommitError as error:
        return StagedEpoch(epoch, None, 0, 0, 0, 0, problem=str(error))
    return await _count(store, epoch, stored.seal, manifests)


async def _count(store: Get, epoch: Epoch, seal: Seal | None, manifests: Sequence[_Named]) -> StagedEpoch:
    """Adds up the epoch's manifests; those that the seal names and nobody can read make it incomplete."""
    winners: dict[tuple[TaskId, AttemptId], int] = (
        {} if seal is None else {(w.task, w.attempt): w.manifests for w in seal.winners}
    )

    async def figures(named: _Named) -> tuple[int, int, int] | str:
        path = layout.manifest_path(*named)
        try:
            found = await store.get(path)
            if not isinstance(found, Found):
                return f"manifest {path} went away while it was looked at; look again"
            manifest = codec.decode_manifest(found.body, path)
        except LakecommitError as error:
            return str(error)
        files = manifest.files
        return len(files), sum(file.rows for file in files), sum(file.size_bytes for file in files)

    files = rows = size_bytes = lost_files = 0
    problems: list[str] = []
    for (attempt, number), counted in zip(manifests, await in_parallel(figures, manifests), strict=True):
        wins = seal is None or number < winners.get((attempt.task, attempt.id), 0)
        if isinstance(counted, str):
            problems += [counted] if wins else []
        elif wins:
            files, rows, size_bytes = files + counted[0], rows + counted[1], size_bytes + counted[2]
        else:
            lost_files += counted[0]
    problems += _missing(epoch, winners, manifests)
    attempts = len({attempt.id for attempt, _ in manifests})
    sealed_ms = None if seal is None else seal.sealed_ms
    return StagedEpoch(epoch, sealed_ms, attempts, files, rows, size_bytes, lost_files, "; ".join(problems) or None)


def _missing(epoch: Epoch, winners: dict[tuple[TaskId, AttemptId], int], manifests: Iterable[_Named]) -> list[str]:
    there = {(attempt.task, attempt.id, number) for attempt, number in manifests}
    missing = sum(
        (task, attempt, number) not in there for (task, attempt), count in winners.items() for number in range(count)
    )
    if not missing:
        return []
    return [f"{missing} manifests that the seal of epoch {epoch} names are missing; restore them from a backup"]


async def users(store: List) -> AsyncIterator[CommitUser]:
    """Every commit user that has state below the table, ordered by name.

    Each costs one page of a listing, whatever there is below it.
    """
    prefix = layout.users_prefix()
    after: str | None = None
    while (path := await _first_path(store, prefix, after)) is not None:
        name = path.removeprefix(f"{prefix}/").partition("/")[0]
        after = f"{prefix}/{name}/{_LAST}"
        if user := layout.parse_user(path):
            yield user


async def _first_path(store: List, prefix: str, after: str | None) -> str | None:
    async for page in store.list(prefix, start_after=after):
        for info in page:
            return info.path
    return None


async def _seals_after(store: ReadState, user: CommitUser, own: Epoch | None) -> tuple[list[Epoch], Epoch | None]:
    """Sealed epochs after the own mark, and the newest seal of all (which may be the one of the own mark)."""
    after = layout.seal_path(user, Epoch(own - 1)) if own else None
    epochs: list[Epoch] = []
    async for page in store.list(layout.seals_prefix(user), start_after=after):
        epochs += [parsed[1] for info in page if (parsed := layout.parse_seal_path(info.path))]
    return [epoch for epoch in epochs if own is None or epoch > own], max(epochs, default=None)


async def _manifests_after(store: ReadState, user: CommitUser, own: Epoch | None) -> dict[Epoch, list[_Named]]:
    after = None if own is None else f"{layout.writers_prefix(user, own)}/{_LAST}"
    found: dict[Epoch, list[_Named]] = {}
    async for page in store.list(layout.writers_prefix(user), start_after=after):
        for info in page:
            if named := layout.parse_manifest_path(info.path):
                found.setdefault(named[0].epoch, []).append(named)
    return found
