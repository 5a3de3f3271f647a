"""Leases as a listing shows them, and which of them count. The decisions are pure; times are the store's alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from lakecommit.errors import UnsupportedTable
from lakecommit.state.lease_layout import LEASES, LeaseName, parse_lease
from lakecommit.storage.base import List, ObjectInfo

# A store may round its times, and the machines behind it may differ a little.
MARGIN_MS = 60_000


@dataclass(frozen=True, slots=True)
class SeenLease:
    """One object of a lease. While a lease is renewed it has two, and both count."""

    name: LeaseName
    put_ms: int

    @property
    def expires_ms(self) -> int:
        """The last moment at which it counts, by the store's clock."""
        return self.put_ms + self.name.ttl_s * 1000 + MARGIN_MS

    def counts(self, now_ms: int) -> bool:
        return self.expires_ms >= now_ms


async def list_leases(store: List) -> Sequence[SeenLease]:
    """All of them, expired ones too. Raises `UnsupportedTable` if one is not understood."""
    return seen_leases([info async for page in store.list(LEASES) for info in page])


def seen_leases(infos: Iterable[ObjectInfo]) -> Sequence[SeenLease]:
    found = []
    for info in infos:
        name = parse_lease(info.path)
        if name is None:
            raise UnsupportedTable(
                f"{info.path} is no lease that this release understands: a newer lakecommit may promise something by "
                "it, so that nothing is deleted. Use the release that put it there, or delete it if none did"
            )
        found.append(SeenLease(name, info.modified_ms))
    return found


def counting(leases: Iterable[SeenLease], now_ms: int, ignored: Collection[str] = ()) -> Sequence[SeenLease]:
    """The leases that have not expired at `now_ms`, without those of `ignored`, which are ids."""
    return [each for each in leases if each.counts(now_ms) and each.name.lease not in ignored]


def times_seen(leases: Iterable[SeenLease]) -> int:
    """A moment that the store's clock has reached for certain, by what a listing shows: for those who write nothing."""
    return max((each.put_ms for each in leases), default=0)


def oldest_leased(leases: Iterable[SeenLease]) -> int | None:
    """The lowest version that any of `leases` keeps; None where there are none."""
    return min((each.name.version for each in leases), default=None)
