"""What local disk needs beside obstore: removes directories that are not needed, and halves of killed writes."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

STAGED_SUFFIXES = 8
ABANDONED_AFTER_SECONDS = 600.0

_HALF = re.compile(r".+#[0-9]+")


@dataclass(frozen=True, slots=True)
class LocalTree:
    """The directory of a location. `root` is absolute; nothing at or above it is ever removed."""

    root: str

    def takes_no_directory(self, path: str) -> bool:
        """Whether the file `path` below the root cannot be written because a directory that is there takes no other.

        So it is with file systems that are no place for files, such as /proc. A directory that somebody has just
        removed is another matter: then writing it again helps.
        """
        parent, missing = os.path.dirname(os.path.join(self.root, path)), ""
        while not os.path.isdir(parent):
            missing, parent = parent, os.path.dirname(parent)
        if not missing:
            return False
        try:
            os.mkdir(missing)
        except FileNotFoundError:
            return os.path.isdir(parent)
        except OSError:
            # It is said when it is tried again.
            return False
        return False

    def tidy(self, path: str) -> None:
        """After the file `path` below the root was deleted: removes what a killed write of it left, and empty parents.

        obstore writes `name#1` (`name#2`, … where that is taken) and then links it to `name`. It neither lists nor
        deletes such files, so they go with the name. A writer that is just filling one fails, which is what deleting
        its file means. A directory that is no longer empty is left alone by the system itself, and a writer that
        finds its directory gone creates it again.
        """
        file = os.path.join(self.root, path)
        for number in range(1, STAGED_SUFFIXES + 1):
            with contextlib.suppress(OSError):
                os.unlink(f"{file}#{number}")
        parent = os.path.dirname(file)
        with contextlib.suppress(OSError):
            while len(parent) > len(self.root):
                _remove_abandoned(parent)
                os.rmdir(parent)
                parent = os.path.dirname(parent)


def abandoned_halves(location: str, directory: str, older_than_s: float) -> list[str]:
    """Files that killed writes left in a directory of `location`, nobody having written to them for so long.

    Their names may be there or not: a half is never read, and is no object for any store. One that somebody who slept
    since then still wants to link fails there, and looks again. None where `location` is not on local disk.
    """
    found: list[str] = []
    with contextlib.suppress(OSError), os.scandir(os.path.join(location, directory)) as entries:
        for entry in entries if os.path.isabs(location) else ():
            with contextlib.suppress(OSError):
                if _HALF.fullmatch(entry.name) and time.time() - entry.stat().st_mtime > older_than_s:
                    found.append(entry.path)
    return sorted(found)


def remove_checksum(location: str, path: str) -> None:
    """Removes what Hadoop keeps beside a file of `location` to check it by: who changes the file without Hadoop has
    nobody else do it. Nothing where `location` is not on local disk."""
    directory, _, name = path.rpartition("/")
    if os.path.isabs(location):
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(location, directory, f".{name}.crc"))


def remove_halves(paths: Sequence[str]) -> int:
    """How many of them are gone."""
    gone = 0
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)
            gone += 1
    return gone


def _remove_abandoned(directory: str) -> None:
    """Where a directory holds nothing but halves of writes that nobody can be filling any more, they go.

    Their names never came to be, so that no listing shows them.
    """
    with os.scandir(directory) as found:
        entries = [entry for _, entry in zip(range(STAGED_SUFFIXES + 1), found, strict=False)]
    if len(entries) > STAGED_SUFFIXES or not all(_HALF.fullmatch(entry.name) for entry in entries):
        return
    if all(time.time() - entry.stat().st_mtime > ABANDONED_AFTER_SECONDS for entry in entries):
        for entry in entries:
            os.unlink(entry.path)
