"""Local disk for what a committer's memory has no room for: in memory here, full for a while, and not to be trusted."""

from __future__ import annotations

import errno
import io

from .process import Process
from .profile import MINUTE_MS


class Disk:
    """The local disk of one process."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._full_until_ms = 0

    def new_file(self) -> io.BytesIO:
        world = self._process.world
        world.count("segments written")
        if self.is_full():
            world.note(self._process.name, "has no room on its disk")
            raise OSError(errno.ENOSPC, "no space left")
        return _File(self)

    def is_full(self) -> bool:
        world = self._process.world
        if world.chaos and world.loop.now < self._full_until_ms:
            return True
        if not world.chance(world.profile.disk_full):
            return False
        world.count("times that a disk was full")
        self._full_until_ms = world.loop.now + int(world.rng.random() ** 2 * 10 * MINUTE_MS)
        return True

    def does_damage(self) -> bool:
        world = self._process.world
        if not world.chance(world.profile.disk_damage):
            return False
        world.count("segments damaged")
        world.note(self._process.name, "reads something else from its disk than it wrote")
        return True


class _File(io.BytesIO):
    """Takes what fits, and gives back what it was given, or a part of it, or something else."""

    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self._disk = disk

    def write(self, data: object) -> int:
        if self._disk.is_full():
            raise OSError(errno.ENOSPC, "no space left")
        return super().write(data)  # type: ignore[arg-type]

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        if not found or not self._disk.does_damage():
            return found
        at = len(found) // 2
        return found[:at] if at % 2 else found[:at] + bytes([found[at] ^ 1]) + found[at + 1 :]
