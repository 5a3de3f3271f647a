"""The grammar of the names of leases and vacuums. Names and the store's times are the protocol; bodies are for people.

    _lakecommit/leases/<version>-<ttl>-<lease>-<unique>.json     a promise to a reader
    _lakecommit/vacuum/clock/<run>.json                          what the store's clock says as a vacuum begins
    _lakecommit/vacuum/intents/<run>.json                        a vacuum is about to look at leases
    _lakecommit/vacuum/cuts/<version>-<run>.json                 files that versions up to this one removed may be gone
    _lakecommit/vacuum/swept/<version>.json                      they are gone

Versions have twenty digits, a ttl is in seconds; lease, unique and run are 32 hexadecimal digits. A name that does not
parse is somebody's who knows more than this release: whoever deletes files stops there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lakecommit.state.layout import ROOT

LEASES = f"{ROOT}/leases"
VACUUM = f"{ROOT}/vacuum"
CLOCK = f"{VACUUM}/clock"
INTENTS = f"{VACUUM}/intents"
CUTS = f"{VACUUM}/cuts"
SWEPT = f"{VACUUM}/swept"
MAX_VERSION = 2**63 - 1
MAX_TTL_S = 30 * 24 * 60 * 60

_ID = re.compile(r"[0-9a-f]{32}")
_LEASE = re.compile(rf"{LEASES}/([0-9]{{20}})-([1-9][0-9]{{0,9}})-([0-9a-f]{{32}})-([0-9a-f]{{32}})\.json")
_RUN = re.compile(rf"{VACUUM}/(?:clock|intents)/([0-9a-f]{{32}})\.json")
_CUT = re.compile(rf"{CUTS}/([0-9]{{20}})-([0-9a-f]{{32}})\.json")
_SWEPT = re.compile(rf"{SWEPT}/([0-9]{{20}})\.json")


@dataclass(frozen=True, slots=True)
class LeaseName:
    """`lease` stays the same for as long as its holder lives, `unique` is new with each object of it."""

    version: int
    ttl_s: int
    lease: str
    unique: str

    @property
    def path(self) -> str:
        _check_id(self.lease)
        _check_id(self.unique)
        if not 0 < self.ttl_s <= MAX_TTL_S:
            raise ValueError(f"a lease of {self.ttl_s} s")
        return f"{LEASES}/{_digits(self.version)}-{self.ttl_s}-{self.lease}-{self.unique}.json"


@dataclass(frozen=True, slots=True)
class CutName:
    version: int
    run: str

    @property
    def path(self) -> str:
        return f"{CUTS}/{_digits(self.version)}-{_check_id(self.run)}.json"


def clock_path(run: str) -> str:
    return f"{CLOCK}/{_check_id(run)}.json"


def intent_path(run: str) -> str:
    return f"{INTENTS}/{_check_id(run)}.json"


def swept_path(version: int) -> str:
    return f"{SWEPT}/{_digits(version)}.json"


def parse_lease(path: str) -> LeaseName | None:
    match = _LEASE.fullmatch(path)
    if match is None or int(match[1]) > MAX_VERSION or int(match[2]) > MAX_TTL_S:
        return None
    return LeaseName(int(match[1]), int(match[2]), match[3], match[4])


def parse_run(path: str) -> str | None:
    """The run whose clock or intent this is."""
    match = _RUN.fullmatch(path)
    return None if match is None else match[1]


def parse_cut(path: str) -> CutName | None:
    match = _CUT.fullmatch(path)
    return None if match is None or int(match[1]) > MAX_VERSION else CutName(int(match[1]), match[2])


def parse_swept(path: str) -> int | None:
    match = _SWEPT.fullmatch(path)
    return None if match is None or int(match[1]) > MAX_VERSION else int(match[1])


def _digits(version: int) -> str:
    if not 0 <= version <= MAX_VERSION:
        raise ValueError(f"version {version} is out of range")
    return f"{version:020d}"


def _check_id(text: str) -> str:
    if _ID.fullmatch(text) is None:
        raise ValueError(f"not 32 hexadecimal digits: {text!r}")
    return text
