"""Tasks that fail inside their writer, at each point of it, and that Spark tries again in the same job."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from lakecommit.demo.place import Place
from lakecommit.model import Epoch
from lakecommit.state import layout
from lakecommit.state.codec import decode_seal
from tests.process.evidence import Objects, assert_no_orphans

from .failing_writers import (
    AFTER_ALL_FILES,
    AFTER_MANIFEST,
    AFTER_REPORT,
    AFTER_SOME_FILES,
    BEFORE_MANIFEST,
    FAILING_TASK,
    POINTS,
)
from .other_driver import drive
from .streams import ids

# Tasks that fail for good are in test_failing_tasks.py; attempts that lose, at every step, in tests/crash.
pytestmark = [pytest.mark.spark, pytest.mark.soak]

# How many manifests and files of the first attempt are there when it fails. A task has five rows, with a file for each.
STAGED = {
    BEFORE_MANIFEST: (0, 0),
    AFTER_MANIFEST: (1, 0),
    AFTER_SOME_FILES: (1, 1),
    AFTER_ALL_FILES: (1, 5),
    AFTER_REPORT: (1, 5),
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What is left of a stream with a fault in each epoch, and of a batch write with one, once the driver has cleaned
    up: all of it in one process, and nothing run twice."""
    directory = tmp_path_factory.mktemp("retried")
    said = drive("failing_tasks", directory)
    places = {name: Place(str(directory / name), {}, None) for name in ("stream", "batch")}
    objects = {name: Objects.of(place) for name, place in places.items()}
    return SimpleNamespace(directory=directory, said=said, places=places, objects=objects)


def attempts(notes, epoch) -> tuple[dict, dict]:
    """What Spark's first and second attempt at the failing task have noted; there were no others."""
    paths = sorted(notes.glob(f"{epoch}-*.json"))
    assert [path.name for path in paths] == [f"{epoch}-0.json", f"{epoch}-1.json"]
    first, second = (json.loads(path.read_text()) for path in paths)
    return first, second


def assert_the_second_is_there_and_nothing_of_the_first(found: Objects, first: dict, second: dict, point: str) -> None:
    assert (first["point"], first["manifests"], first["files"]) == (point, *STAGED[point])
    assert not [path for path in found.data if first["attempt"] in path]
    assert len([path for path in found.data if second["attempt"] in path]) == 5


@pytest.mark.parametrize("point", POINTS)
def test_an_epoch_is_of_the_attempt_that_did_not_fail(seen, point):
    epoch, found = POINTS.index(point), seen.objects["stream"]
    first, second = attempts(seen.directory, epoch)
    assert_the_second_is_there_and_nothing_of_the_first(found, first, second, point)
    # A loser may still be uploading, as far as anybody knows.
    assert len([path for path in found.manifests if first["attempt"] in path]) == STAGED[point][0]
    (path,) = [path for path in found.seals if layout.parse_seal_path(path)[1] == Epoch(epoch)]
    seal = decode_seal((seen.directory / "stream" / path).read_bytes(), path)
    assert {winner.task: winner.attempt for winner in seal.winners}[FAILING_TASK] == second["attempt"]


def test_a_batch_write_is_of_the_attempt_that_did_not_fail(seen):
    first, second = attempts(seen.directory / "notes", 0)
    assert_the_second_is_there_and_nothing_of_the_first(seen.objects["batch"], first, second, AFTER_REPORT)


@pytest.mark.parametrize("name, writes, seals", [("stream", 5, 5), ("batch", 1, 0)], ids=["stream", "batch"])
def test_every_row_is_there_once(seen, spark, name, writes, seals):
    found = seen.objects[name]
    assert ids(spark, seen.directory / name) == list(range(10 * writes))
    assert len(found.seals) == seals
    # The creation of the table, and a version for each epoch or batch write.
    assert len(found.versions) == 1 + writes
    assert_no_orphans(seen.places[name])
    assert ids(spark, seen.directory / name) == list(range(10 * writes)), "cleaning up took a file of the table"


def test_the_query_was_not_started_again(seen):
    assert (seen.said["epochs"], seen.said["runs"]) == (list(range(len(POINTS))), 1)
