"""What may be deleted: pure, no I/O, no clock.

The theory. Everything that an attempt leaves behind is named by its manifests, so a listing of manifests is a listing
of all that could be left over. What may go follows from where the epoch stands. An epoch that is committed while that
is found out only looks younger than it is, which deletes less and never more.

    standing   what has lost              when its state goes
    OPEN       nobody: Spark runs it      never
    PENDING    who is not in the seal     never
    DONE       who is not in the seal     released, see below
    PASSED     who is not in the seal     never: lakecommit has not committed it
    STRAY      everybody, see below       when its manifests are old
    UNSEALED   whom the log does not name when its manifests are old

In a STRAY epoch whoever is still named has lost, because the winners' manifests went with the release. Only a request
that lands long after it was sent can bring one back, so that the log is asked about their files all the same.

An epoch is *released*, manifests first and its seal last, when it is DONE, a later seal shows that Spark's checkpoint
covers it, all listeners were told of it, and twice the deadline of an upload has passed since its snapshot and since
the newest of its manifests, so that no loser is still uploading. Oldest first and without gaps: the chain is what tells
a seal from a zombie's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from lakecommit.model import Epoch, Seal
from lakecommit.progress.standing import Standing
from lakecommit.state.stored import NamedManifest


def losers(standing: Standing, seal: Seal | None, manifests: Sequence[NamedManifest]) -> list[NamedManifest]:
    """The manifests of attempts that have lost for certain. Those of an UNSEALED epoch are for the log to judge."""
    if standing is Standing.STRAY:
        return list(manifests)
    if standing in (Standing.OPEN, Standing.UNSEALED):
        return []
    assert seal is not None, "a sealed epoch is judged by its seal"
    winners = {(winner.task, winner.attempt) for winner in seal.winners}
    return [each for each in manifests if (each.attempt.task, each.attempt.id) not in winners]


def releasable(standings: Mapping[Epoch, Standing], committed: Epoch | None, young: Collection[Epoch]) -> list[Epoch]:
    """The sealed epochs whose state may go, oldest first.

    `committed` is the newest epoch whose snapshot is old enough and known to all listeners, `young` are epochs with a
    manifest that is not. The newest seal always stays, as evidence: without it a zombie's would count.
    """
    sealed = sorted(epoch for epoch, at in standings.items() if at not in (Standing.OPEN, Standing.UNSEALED))
    strays = [epoch for epoch in sealed if standings[epoch] is Standing.STRAY and epoch not in young]
    released: list[Epoch] = []
    chain = [epoch for epoch in sealed if standings[epoch] is not Standing.STRAY]
    for epoch in chain[:-1]:
        if standings[epoch] is not Standing.DONE or epoch in young or committed is None or epoch > committed:
            break
        released.append(epoch)
    return sorted(strays + released)
