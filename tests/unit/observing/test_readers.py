"""What planners of streams tell the driver: figures by table and lease, and a line for a plan and for its release."""

from __future__ import annotations

import asyncio

import pytest

from lakecommit.observing.readers import KEPT, Readers
from lakecommit.service.dispatch import Committers, Facts
from lakecommit.service.wire import Request, Verb, decode_request, encode_request


def figures(splits: int = 0, planned: int = 0, released: int = 0) -> dict[str, int]:
    return {"kept_version": 3, "splits": splits, "planned": planned, "released": released, "version": -1}


def test_a_plan_and_its_release_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "lakecommit.observing")
    readers = Readers()
    for told in (figures(), figures(9), figures(9, 5), figures(9, 9), figures(0, 9, 1), figures(0, 12, 1)):
        readers.told("table", "lease", told)
    assert [record.message.split()[:3] for record in caplog.records] == [
        ["snapshot-planned", "table=table", "lease=lease"],
        ["snapshot-released", "table=table", "lease=lease"],
    ]
    assert readers.read() == {"table": {"reader-lease": figures(0, 12, 1)}}


def test_those_that_told_something_last_are_kept() -> None:
    readers = Readers()
    for number in range(KEPT + 10):
        readers.told("table", f"{number:04d}", figures())
        readers.told("table", "first", figures())
    known = readers.read()["table"]
    assert len(known) == KEPT and {"reader-first", f"reader-{KEPT + 9:04d}"} <= known.keys()


def test_a_worker_tells_them_through_the_drivers_service() -> None:
    said = {"path": "table", "lease": "lease", **{key: str(value) for key, value in figures(9).items()}}
    request = decode_request(encode_request(Request(Verb.FIGURES, said, "", streaming=True)))
    committers = Committers()
    asyncio.run(committers.answer(request, Facts()))
    assert committers.metrics.read() == {"table": {"reader-lease": figures(9)}}
