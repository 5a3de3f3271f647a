"""Who holds what, as a listing tells it to people. Pure; nothing is deleted by it but what somebody names."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakecommit.leases.listed import SeenLease, times_seen
from lakecommit.state.lease_layout import parse_lease
from lakecommit.storage.base import ObjectInfo


class Standing(enum.Enum):
    """The values are what people read. Whoever writes nothing does not know the store's time, only that it has come as
    far as the newest of its objects."""

    COUNTS = "counts"
    EXPIRED = "expired"
    SEEMS_EXPIRED = "expired, if this machine's clock is right"


@dataclass(frozen=True, slots=True)
class HeldLease:
    """All objects of one lease, the newest last: it has several while it is renewed, and after a restart."""

    lease: str
    objects: tuple[SeenLease, ...]

    @property
    def version(self) -> int:
        return min(each.name.version for each in self.objects)

    @property
    def renewed_ms(self) -> int:
        return self.objects[-1].put_ms

    @property
    def expires_ms(self) -> int:
        return max(each.expires_ms for each in self.objects)

    @property
    def newest_path(self) -> str:
        return self.objects[-1].name.path

    def standing(self, reached_ms: int, own_ms: int) -> Standing:
        """`reached_ms` is what the store's clock has reached for certain, `own_ms` what this machine's says."""
        if self.expires_ms < reached_ms:
            return Standing.EXPIRED
        return Standing.SEEMS_EXPIRED if self.expires_ms < own_ms else Standing.COUNTS


@dataclass(frozen=True, slots=True)
class Held:
    """`leases` are ordered by what they keep. `unknown` are objects that this release does not understand."""

    leases: tuple[HeldLease, ...]
    unknown: tuple[str, ...]
    reached_ms: int


def held(infos: Iterable[ObjectInfo]) -> Held:
    by_id: dict[str, list[SeenLease]] = {}
    unknown: list[str] = []
    for info in infos:
        name = parse_lease(info.path)
        if name is None:
            unknown.append(info.path)
        else:
            by_id.setdefault(name.lease, []).append(SeenLease(name, info.modified_ms))
    leases = [HeldLease(lease, tuple(sorted(seen, key=_age))) for lease, seen in by_id.items()]
    leases.sort(key=lambda each: (each.version, each.lease))
    every: Sequence[SeenLease] = [each for lease in leases for each in lease.objects]
    return Held(tuple(leases), tuple(sorted(unknown)), times_seen(every))


def _age(lease: SeenLease) -> tuple[int, str]:
    return lease.put_ms, lease.name.path
