"""What local disk needs beside obstore: directories that nobody needs any more, and halves of killed writes."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

STAGED_SUFFIXES = 8


@dataclass(frozen=True, slots=True)
class LocalTree:
    """The directory of a location. `root` is absolute; nothing at or above it is ever removed."""

    root: str

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
                os.rmdir(parent)
                parent = os.path.dirname(parent)
