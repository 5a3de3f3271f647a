"""How an attempt's files get into the table: named in a durable manifest first, then uploaded side by side.

Precondition: files are complete. Postcondition of `finish`: every file that a manifest names is fully uploaded.
Failure: nothing is taken back, because the manifests name what was uploaded and the committer cleans up; no upload
begins after its deadline, and one that ends after it is deleted again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from lakecommit.clock import Clock
from lakecommit.errors import LakecommitError, UploadTooLate
from lakecommit.formats.plan import WritePlan
from lakecommit.model import UPLOAD_DEADLINE_MS, Attempt, DataFile, Manifest
from lakecommit.state.codec import encode_manifest
from lakecommit.state.layout import manifest_path
from lakecommit.storage.base import Delete, Put
from lakecommit.writing.encode import EncodedFile
from lakecommit.writing.settings import WriterSettings

_PARALLEL_MANIFESTS = 2


class UploadStore(Put, Delete, Protocol):
    """The verbs that an upload needs."""


class Uploads:
    """One attempt's uploads. All methods belong to one event loop.

    Files that are ready wait until they are worth a manifest, and while two manifests' files are under way; so a task
    with few bytes writes one manifest, at its end.
    """

    def __init__(
        self, attempt: Attempt, plan: WritePlan, settings: WriterSettings, store: UploadStore, clock: Clock
    ) -> None:
        self._attempt = attempt
        self._plan = plan.to_json()
        self._settings = settings
        self._store = store
        self._clock = clock
        self._slots = asyncio.Semaphore(settings.parallel_uploads)
        self._ready: list[EncodedFile] = []
        self._ready_bytes = 0
        self._held_bytes = 0
        self._manifests: list[bytes] = []
        self._groups: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None

    async def add(self, file: EncodedFile) -> None:
        """Takes a file over. Returns when there is room for more, and raises what an upload has failed with."""
        self._ready.append(file)
        self._ready_bytes += file.size_bytes
        self._held_bytes += file.size_bytes
        while self._failure is None:
            crowded = not self._has_room()
            if (crowded or self._worth_a_manifest()) and self._ready and len(self._groups) < _PARALLEL_MANIFESTS:
                self._begin_group()
            if not crowded:
                return
            await self._progress()
        raise self._failure

    async def finish(self) -> tuple[bytes, ...]:
        """Uploads what is left and waits for everything; returns the manifests as they are stored, in order."""
        while self._failure is None and (self._ready or self._groups):
            if self._ready and len(self._groups) < _PARALLEL_MANIFESTS:
                self._begin_group()
            await self._progress()
        if self._failure is not None:
            await self.give_up()
            raise self._failure
        return tuple(self._manifests)

    async def give_up(self) -> None:
        """Begins no further upload and waits for those under way, so that each still meets its deadline."""
        self._failure = self._failure or LakecommitError("the attempt was given up")
        while self._groups:
            await self._progress()
        for file in self._ready:
            file.spool.release()
        self._ready = []

    def cancel(self) -> None:
        """Stops everything in the middle, as the death of the process would."""
        for group in self._groups:
            group.cancel()

    def _worth_a_manifest(self) -> bool:
        return self._ready_bytes >= self._settings.manifest_bytes or len(self._ready) >= self._settings.manifest_files

    def _has_room(self) -> bool:
        # The next file may be as large as the target, so that room for one is kept.
        limit = self._settings.pending_bytes - self._settings.target_file_size_bytes
        few_files = len(self._ready) < 2 * self._settings.manifest_files
        return few_files and self._held_bytes <= max(limit, self._settings.manifest_bytes)

    async def _progress(self) -> None:
        await asyncio.wait(self._groups, return_when=asyncio.FIRST_COMPLETED)

    def _begin_group(self) -> None:
        files, self._ready, self._ready_bytes = self._ready, [], 0
        created_ms = self._clock.wall_ms()
        manifest = encode_manifest(
            Manifest(
                attempt=self._attempt,
                number=len(self._manifests),
                plan=self._plan,
                files=tuple(_data_file(file, created_ms) for file in files),
            )
        )
        group = asyncio.ensure_future(self._upload_group(len(self._manifests), manifest, files))
        self._manifests.append(manifest)
        self._groups.add(group)
        group.add_done_callback(self._groups.discard)

    async def _upload_group(self, number: int, manifest: bytes, files: list[EncodedFile]) -> None:
        try:
            # Counted from before the manifest's PUT, which is never later than the moment it is durable.
            deadline = _Deadline.from_now(self._clock)
            await self._store.put(manifest_path(self._attempt, number), manifest)
            await asyncio.gather(*(self._upload(file, deadline) for file in files))
        except Exception as error:
            self._failure = self._failure or error
        except asyncio.CancelledError as error:
            self._failure = self._failure or error
            raise
        finally:
            for file in files:
                file.spool.release()
                self._held_bytes -= file.size_bytes

    async def _upload(self, file: EncodedFile, deadline: _Deadline) -> None:
        async with self._slots:
            if self._failure is not None:
                return
            try:
                await self._upload_in_time(file, deadline)
            except Exception as error:
                # Kept, not raised: the others of the group that are under way are waited for, and no more begin.
                self._failure = self._failure or error

    async def _upload_in_time(self, file: EncodedFile, deadline: _Deadline) -> None:
        if deadline.has_passed(self._clock):
            raise UploadTooLate(
                f"{file.path} was not uploaded: its manifest was put over {_DEADLINE_TEXT} before its turn; {_REMEDY}"
            )
        try:
            await self._store.put(file.path, file.spool.body())
        except Exception as error:
            # The request may have taken effect all the same; past the deadline nothing may be left of it.
            if deadline.has_passed(self._clock):
                await self._take_back(file, error)
            raise
        if deadline.has_passed(self._clock):
            await self._take_back(file, None)

    async def _take_back(self, file: EncodedFile, cause: Exception | None) -> None:
        try:
            unconfirmed = bool(await self._store.delete([file.path]))
        except Exception:
            unconfirmed = True
        what = "deleting it again is not confirmed" if unconfirmed else "it was deleted again"
        raise UploadTooLate(
            f"the upload of {file.path} ended over {_DEADLINE_TEXT} after its manifest was put; {what}; {_REMEDY}"
        ) from cause


@dataclass(frozen=True, slots=True)
class _Deadline:
    wall_ms: int
    boot_ms: int

    @staticmethod
    def from_now(clock: Clock) -> _Deadline:
        return _Deadline(clock.wall_ms() + UPLOAD_DEADLINE_MS, clock.boot_ms() + UPLOAD_DEADLINE_MS)

    def has_passed(self, clock: Clock) -> bool:
        # Either clock suffices: the wall clock may be set back, and some platforms' other clock stands still in sleep.
        return clock.wall_ms() > self.wall_ms or clock.boot_ms() > self.boot_ms


def _data_file(file: EncodedFile, created_ms: int) -> DataFile:
    times = file.event_times
    return DataFile(
        file.path,
        file.partition_values,
        file.rows,
        file.size_bytes,
        file.stats,
        created_ms,
        event_time_min_us=None if times is None else times.min_us,
        event_time_max_us=None if times is None else times.max_us,
    )


_DEADLINE_TEXT = f"{UPLOAD_DEADLINE_MS // 60_000} minutes"
_REMEDY = (
    "spark runs the task again; if that is too late, too, the store is too slow for such files: lower targetFileSize"
)
