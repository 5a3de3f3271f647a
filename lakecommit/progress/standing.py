"""Where an epoch of a streaming query stands: the one vocabulary of those who release, look and recover. Pure.

Three things decide, read in this order: the marks, the seals, the manifests. An epoch that is committed in between then
only looks younger than it is.

    after the mark   sealed    after the own mark   standing
    yes              no                             OPEN
    yes              yes                            PENDING
    no               chained   no                   DONE
    no               chained   yes                  PASSED
    no               not so                         STRAY
    no               no                             UNSEALED

*Chained* means that the newest seal leads to this one, digest by digest. A seal at or before the mark that it does not
lead to was created by a zombie after the epoch's release.

The log tells more of two of them, to whoever asks it: a PASSED epoch is MISSING or REPEATED, and a DONE one whose
version somebody wrote over is REPLACED.
"""

from __future__ import annotations

from enum import Enum

from lakecommit.model import Epoch, Marks


class Standing(Enum):
    # Begun and not sealed: Spark runs it, or will run it again.
    OPEN = "open"
    # Sealed, and in no snapshot yet: it will be, once.
    PENDING = "pending"
    # In the table, by the own mark.
    DONE = "done"
    # Sealed and not committed by lakecommit, and another sink has moved the mark past it.
    PASSED = "passed"
    # Passed by a sink that did not run it: its rows are not in the table.
    MISSING = "missing"
    # Passed by a sink that ran it itself: its rows are in the table, and the sealed files have lost.
    REPEATED = "repeated"
    # Done by the mark, but no version of the log holds it any more.
    REPLACED = "replaced"
    # Sealed by a zombie, after its release.
    STRAY = "stray"
    # Never sealed, or released, and the mark is past it: nobody will seal it any more.
    UNSEALED = "unsealed"


def standing_of(epoch: Epoch, marks: Marks, *, sealed: bool, chained: bool) -> Standing:
    """What marks and seals tell."""
    if marks.mark is None or epoch > marks.mark:
        return Standing.PENDING if sealed else Standing.OPEN
    if not sealed:
        return Standing.UNSEALED
    if not chained:
        return Standing.STRAY
    return Standing.DONE if marks.own is not None and epoch <= marks.own else Standing.PASSED
