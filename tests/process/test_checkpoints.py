"""Restarts from a checkpoint that lost something: the newest entry is made up for, everything else is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .evidence import Objects
from .processes import driver_starter
from .streams import Stream, stream_on_disk

# tests/spark/test_restarts.py and test_stream.py do the same to checkpoints of queries in one session.
pytestmark = [pytest.mark.spark, pytest.mark.soak]
NEWEST = 3


@pytest.fixture(scope="module")
def finished(tmp_path_factory, table_format, assert_exactly_once) -> Stream:
    """A stream that has ended. No test changes its table or its checkpoint: each has a copy of the latter."""
    directory = tmp_path_factory.mktemp("finished")
    stream = stream_on_disk(directory, NEWEST + 1, table_format)
    with driver_starter(directory) as start:
        start(stream.job()).finish()
    assert_exactly_once(stream)
    return stream


@pytest.fixture
def checkpoint(finished, tmp_path) -> Path:
    return Path(shutil.copytree(finished.checkpoint, tmp_path / "checkpoint"))


def forget(checkpoint: Path, first: int, *logs: str) -> None:
    """Removes the entries of Spark's `logs` from the epoch `first` on."""
    for log in logs:
        for path in (checkpoint / log).iterdir():
            number = path.name.removeprefix(".").removesuffix(".crc")
            if number.isdigit() and int(number) >= first:
                path.unlink()


def another_file(finished: Stream, directory: Path) -> str:
    """Where a source finds the files that it knows and one more."""
    more = finished.source.with_name(f"input-{directory.name}")
    number = len(list(finished.source.iterdir()))
    shutil.copytree(finished.source, directory / "input")
    added = Stream(directory, finished.place, {})
    added.add_files(1)
    more.mkdir()
    shutil.move(directory / "input" / f"{number:06d}.json", more)
    return f"{finished.directory}/{{input,{more.name}}}"


def test_the_newest_entry_of_the_commit_log_is_made_up_for(start, finished, checkpoint, assert_exactly_once):
    """It is gone: the epoch is sealed, so that its input is not read again."""
    before = Objects.of(finished.place)
    forget(checkpoint, NEWEST, "commits")
    driver = start(finished.job(checkpoint=str(checkpoint))).finish()
    assert driver.epochs == {}
    assert (checkpoint / "commits" / str(NEWEST)).exists()
    assert Objects.of(finished.place) == before, "no data file, no manifest, no seal, no version"
    assert_exactly_once(finished)


def test_a_rewound_checkpoint_is_refused(start, finished, checkpoint, assert_exactly_once):
    before = Objects.of(finished.place)
    forget(checkpoint, NEWEST - 1, "offsets", "commits", "sources/0")
    driver = start(finished.job(checkpoint=str(checkpoint)))
    driver.wait()
    assert "rewound" in (driver.failure or ""), driver.text[-8000:]
    assert Objects.of(finished.place) == before
    assert_exactly_once(finished)


def test_an_epoch_with_other_offsets_is_refused(start, finished, checkpoint, tmp_path, assert_exactly_once):
    """The newest epoch is planned again, together with a file that came later."""
    before = Objects.of(finished.place)
    forget(checkpoint, NEWEST, "offsets", "commits")
    source = another_file(finished, tmp_path)
    driver = start(finished.job(checkpoint=str(checkpoint), source=source))
    driver.wait()
    assert "other offsets" in (driver.failure or ""), driver.text[-8000:]
    assert Objects.of(finished.place) == before
    assert_exactly_once(finished)


def test_an_epoch_with_the_same_offsets_and_other_files_is_refused(start, finished, checkpoint, tmp_path):
    """The checkpoint is the copy from before the newest epoch, which now takes two files instead of one.

    A file source's offset is a number that says nothing about the files behind it; its own log does.
    """
    before = Objects.of(finished.place)
    forget(checkpoint, NEWEST, "offsets", "commits", "sources/0")
    source = another_file(finished, tmp_path)
    driver = start(finished.job(checkpoint=str(checkpoint), source=source, files_per_epoch=2))
    driver.wait()
    assert "other offsets" in (driver.failure or ""), driver.text[-8000:]
    assert Objects.of(finished.place) == before
