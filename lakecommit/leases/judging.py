"""Whether a lease holds, by the cuts that a listing shows and by what the versions below them removed. Pure.

A cut alone is no loss: a reader that was off for a month goes on where nothing that it wants was removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b

from lakecommit.formats.reading import GoneFile, ReadFile, VersionChange
from lakecommit.state.lease_layout import CUTS, CutName, parse_cut

# Whether a reader may still read a file that a version removed. The second is None for a file of the lease's version,
# and of one that a later version added says whether its rows were new.
Wanted = Callable[[GoneFile, bool | None], bool]


def everything(gone: GoneFile, new: bool | None) -> bool:
    """What a reader wants that says nothing else."""
    return True


@dataclass(frozen=True, slots=True)
class Loss:
    """The first version after the lease's of which a cut is a loss: it removed `path`, which is wanted, or it cannot be
    read any more, for which there is no path but a `reason`."""

    version: int
    path: str = ""
    reason: str = ""

    def __str__(self) -> str:
        return self.reason or f"version {self.version} removed {self.path}"


@dataclass(frozen=True, slots=True)
class CutsAbove:
    """Cuts above a lease's version, the lowest first, and objects among the cuts that are not understood."""

    cuts: tuple[CutName, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def highest(self) -> int | None:
        return self.cuts[-1].version if self.cuts else None


@dataclass(frozen=True, slots=True)
class Holds:
    """No cut took anything that is wanted."""


@dataclass(frozen=True, slots=True)
class NotNow:
    """A cut stands against it. A vacuum that was fenced withdraws its cut, so that it is worth another look."""

    cut: str
    why: str


def cuts_above(version: int, paths: Iterable[str]) -> CutsAbove:
    cuts, unknown = [], []
    for path in paths:
        name = parse_cut(path)
        if name is None:
            unknown.append(path)
        elif name.version > version:
            cuts.append(name)
    return CutsAbove(tuple(sorted(cuts, key=lambda each: (each.version, each.run))), tuple(sorted(unknown)))


def judge(above: CutsAbove, loss: Loss | None) -> Holds | NotNow:
    """`loss` is what `first_loss` finds up to the highest cut. What is not understood may be a cut of any version."""
    if above.unknown:
        return NotNow(above.unknown[0], "this release does not understand it, and a newer one may have cut by it")
    if loss is not None:
        for cut in above.cuts:
            if cut.version >= loss.version:
                return NotNow(cut.path, str(loss))
    return Holds()


class LossFinder:
    """Takes the versions after the lease's, in order. Remembers what they added, which may go again: of each file some
    bytes, however long its path is, until it is gone."""

    def __init__(self, version: int, wanted: Wanted) -> None:
        self.version = version
        self._wanted = wanted
        self._added: dict[bytes, bool] = {}

    def take(self, change: VersionChange) -> Loss | None:
        if change.version != self.version + 1:
            return Loss(self.version + 1, reason=f"version {self.version + 1} is no longer in the log")
        self.version = change.version
        # What is wanted whatever it is need not be known.
        if self._wanted is everything:
            gone = next(iter(change.removes()), None)
            return None if gone is None else Loss(change.version, gone.path)
        for each in change.removes():
            if self._wanted(each, self._added.pop(_digest(each), None)):
                return Loss(change.version, each.path)
        for file, is_new in change.adds():
            self._added[_digest(file)] = is_new
        return None

    def at_the_end(self, until: int) -> Loss | None:
        """After all versions up to `until` that the log has were taken."""
        if self.version >= until:
            return None
        reason = (
            f"the log ends with version {self.version}: the table was made again after a cut at {until}, and no lease "
            f"holds until somebody deletes {CUTS}, which are of the table before"
        )
        return Loss(self.version + 1, reason=reason)


def _digest(file: ReadFile | GoneFile) -> bytes:
    return blake2b(f"{file.path}\0{file.vector_id}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
