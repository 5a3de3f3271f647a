"""Segments share files: few descriptors, each gone with its last segment, and no trace of a write that failed."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakecommit.model import Epoch
from lakecommit.progress.pending import PendingFiles, PendingMemory
from lakecommit.progress.segment_files import FilePart, SegmentFiles, unnamed_file
from tests.unit.progress.tools import OTHER, QUERY, add, manifests_of


class Opened:
    """Gives unnamed files and keeps them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.files: list[io.FileIO] = []

    def new_file(self) -> io.FileIO:
        file = unnamed_file(str(self._directory))
        assert isinstance(file, io.FileIO)
        self.files.append(file)
        return file

    @property
    def open(self) -> list[io.FileIO]:
        return [file for file in self.files if not file.closed]

    @property
    def used(self) -> int:
        return sum(os.fstat(file.fileno()).st_size for file in self.open)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    opened = Opened(tmp_path)
    yield opened
    for file in opened.open:
        file.close()


def part_of(files: SegmentFiles, data: bytes) -> FilePart:
    part = files.new_part()
    part.write(data)
    part.flush()
    return part


def whole(part: FilePart) -> bytes:
    part.seek(0)
    return part.read(1_000_000)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files, which only /proc lists")
def test_a_thousand_segments_take_few_descriptors(tmp_path: Path) -> None:
    before = descriptors()
    pending = PendingFiles(memory=PendingMemory(1_000), segment_bytes=1_000, local_dir=str(tmp_path))
    for query in (QUERY, OTHER):
        add(pending, range(2_000), query=query)
    assert descriptors() - before == 2, "one for each query"
    assert list(tmp_path.iterdir()) == [], "a killed process leaves nothing"
    for query in (QUERY, OTHER):
        assert pending.manifests(query, Epoch(1_234)) == manifests_of(1_234)
        pending.drop(query, Epoch(1_999))
    assert descriptors() == before, "what is committed takes none"


@settings(max_examples=30, deadline=None)
@given(steps=st.lists(st.one_of(st.integers(1, 400), st.just(0)), max_size=60))
def test_every_part_is_read_as_it_was_written_while_others_come_and_go(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int]
) -> None:
    """A number is the size of a new part, and 0 lets go of the oldest one."""
    opened = Opened(tmp_path_factory.mktemp("disk"))
    files = SegmentFiles(opened.new_file, least_file_bytes=500)
    parts: list[tuple[FilePart, bytes]] = []
    for number, size in enumerate(steps):
        if size:
            body = bytes([number % 256]) * size
            parts.append((part_of(files, body), body))
        elif parts:
            parts.pop(0)[0].close()
        assert [whole(part) for part, _ in parts] == [body for _, body in parts]
        live = sum(len(body) for _, body in parts)
        assert len(opened.open) <= 2 + live / 500
        assert opened.used <= 2 * live + 2 * 900
    for part, _ in parts:
        part.close()
    assert opened.open == []


def test_a_file_grows_with_what_is_spilled(opened: Opened) -> None:
    files = SegmentFiles(opened.new_file, least_file_bytes=1_000)
    for _ in range(1_000):
        part_of(files, b"x" * 100)
    assert len(opened.open) <= 8, "not one for each thousand bytes"


def test_a_part_that_could_not_be_written_leaves_the_others_as_they_are(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = SegmentFiles(opened.new_file)
    first = part_of(files, b"first")
    really = os.pwrite

    def some(number: int, data: memoryview, offset: int) -> int:
        if len(data) <= 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return really(number, data[:-3], offset)

    monkeypatch.setattr(os, "pwrite", some)
    failed = files.new_part()
    failed.write(b"does not fit")
    with pytest.raises(OSError, match="No space left"):
        failed.flush()
    failed.close()
    monkeypatch.undo()
    assert opened.used == len(b"first"), "the room that it took is free again"
    second = part_of(files, b"2nd")
    assert (whole(first), whole(second)) == (b"first", b"2nd")
    assert len(opened.open) == 1


def test_a_file_that_ends_early_gives_less_and_closing_twice_does_nothing(opened: Opened) -> None:
    files = SegmentFiles(opened.new_file)
    part, other = part_of(files, b"abcdef"), part_of(files, b"ghi")
    os.ftruncate(opened.open[0].fileno(), 4)
    assert whole(part) == b"abcd"
    part.close()
    part.close()
    assert whole(other) == b""
    other.close()
    assert opened.open == []
