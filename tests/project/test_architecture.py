"""docs/architecture.md speaks of what is there."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
import uuid
from pathlib import Path

import pyarrow as pa

from lakecommit.model import Attempt, AttemptId, Epoch, QueryId, TaskId
from lakecommit.options.parsing import parse_options
from lakecommit.service.dispatch import Committers, Facts
from lakecommit.service.wire import Request, Verb, decode_request, encode_request
from lakecommit.spark_ext.task import run_task
from lakecommit.state.codec import encode_report
from tests.lake import SCHEMA
from tests.project.test_rooms import LAYER_OF

ROOT = Path(__file__).resolve().parents[2]
# Whoever follows an epoch reads so many files at the most.
MOST_MODULES = 35
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def test_every_file_that_it_names_exists():
    named = re.findall(r"`((?:lakecommit|state|spark_ext|tests)/[\w/]+\.py)`", PAGE)
    assert len(named) > 50
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_room_is_on_the_map():
    drawn = PAGE.partition("## The map")[2].partition("Calls go down only")[0]
    assert {room for room in LAYER_OF if not re.search(rf"\b{room}\b", drawn)} == set()


def test_the_way_of_an_epoch_is_the_one_that_it_takes(tmp_path):
    """An epoch goes its way without Spark, from the request for a plan to the version, and every module is noted."""
    told = way_of_an_epoch()
    assert len(told) <= MOST_MODULES
    with_spark = {path for path in told if path.startswith("spark_ext/")} - {"spark_ext/task.py"}
    elsewhere = with_spark | {
        # Between processes, and long after the version.
        "lakecommit/service/server.py",
        "lakecommit/releasing/query.py",
        "lakecommit/releasing/losers.py",
    }
    assert elsewhere < told
    assert sorted(told - elsewhere - modules_of_an_epoch(str(tmp_path / "table"))) == []


def way_of_an_epoch() -> set[str]:
    table = PAGE.partition("## The way of an epoch")[2].partition("## The way of a restart")[0]
    return set(re.findall(r"`((?:lakecommit|state|spark_ext)/[\w/]+\.py)`", table))


def modules_of_an_epoch(path: str) -> set[str]:
    """The files whose functions are called while an epoch that is not the first becomes a version."""
    files: set[str] = set()
    noting = False

    def note(frame, event, arg):
        if noting and event == "call" and str(ROOT) in frame.f_code.co_filename:
            files.add(str(Path(frame.f_code.co_filename).resolve().relative_to(ROOT)))

    async def story():
        nonlocal noting
        committers, query, options = Committers(), QueryId(str(uuid.uuid4())), {"path": path}
        committers.begin_run(query)
        for epoch in range(2):
            noting = epoch == 1
            request = encode_request(Request(Verb.PLAN, options, SCHEMA, streaming=True))
            planned = await committers.answer(decode_request(request), Facts(queries=[query]))
            attempt = Attempt(query, Epoch(epoch), TaskId(0), AttemptId(uuid.uuid4().hex))
            rows = pa.record_batch({"id": pa.array([epoch]), "text": pa.array(["x"])})
            parsed = parse_options(options, streaming=True)
            report = await asyncio.to_thread(run_task, iter([rows]), attempt, planned.plan, parsed, {}.get)
            reports = (encode_report(report),)
            request = Request(Verb.COMMIT_EPOCH, options, SCHEMA, streaming=True, epoch=epoch, reports=reports)
            assert (await committers.answer(request, Facts())).version == epoch + 1
        noting = False

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        asyncio.run(story())
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return files
