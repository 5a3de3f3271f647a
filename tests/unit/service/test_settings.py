"""What whoever reads asks the driver: settings, where a table is, and the version that a frame had first."""

from __future__ import annotations

import asyncio

from lakecommit.service import dispatch
from lakecommit.service.dispatch import Committers, Facts
from lakecommit.service.wire import Answer, Request, Verb


def ask(committers, frame="", version=None, **facts):
    request = Request(Verb.SETTINGS, {}, "", streaming=False, query=frame, read_version=version)
    return asyncio.run(committers.answer(request, Facts(**facts)))


def test_settings_and_the_place_of_a_table():
    answer = ask(Committers(), defaults={"splitSize": "1m"}, reads=["/t"])
    assert answer == Answer(defaults={"splitSize": "1m"}, plan="/t")


def test_a_frame_keeps_the_first_version_that_it_was_read_at(monkeypatch):
    monkeypatch.setattr(dispatch, "FRAMES_KNOWN", 2)
    committers = Committers()
    assert [ask(committers, "a", version).version for version in (3, 7, 3)] == [3, 3, 3]
    assert [ask(committers, frame, 9).version for frame in ("b", "c")] == [9, 9]
    assert ask(committers, "a", 11).version == 11, "only so many are remembered"
