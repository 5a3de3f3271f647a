"""The chain of a query's seals: each carries the digest of the one before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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
