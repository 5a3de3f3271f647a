"""The chain of a query's seals: each carries the digest of the one before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lakecommit.model import Epoch


@dataclass(frozen=True, slots=True)
class Link:
    """A seal's place in the chain: the digest of its bytes, and the one that it carries of the seal before."""

    epoch: Epoch
    digest: bytes
    previous: bytes | None


def chained(links: Iterable[Link]) -> frozenset[Epoch]:
    """The epochs whose seals the newest one leads to, itself included."""
    reached: list[Epoch] = []
    expected: bytes | None = None
    for link in sorted(links, key=lambda link: link.epoch, reverse=True):
        if not reached or link.digest == expected:
            reached.append(link.epoch)
            expected = link.previous
    return frozenset(reached)


def first_break(links: Sequence[Link]) -> tuple[Link, Link] | None:
    """The first two neighbours, in order, of which the later does not carry the digest of the one before; None where
    all are one chain."""
    return next((pair for pair in pairwise(links) if pair[1].previous != pair[0].digest), None)
