"""A segment gives back what was written, or says that it cannot."""

from __future__ import annotations

import io
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakecommit.errors import CorruptState
from lakecommit.model import Epoch, QueryId
from lakecommit.progress.segments import Segment
from tests.unit.progress.tools import OTHER, QUERY, Disk, manifests_of

EPOCHS = [manifests_of(epoch, count, size=20) for epoch, count in ((7, 2), (8, 0), (9, 3))]


def written(query: QueryId = QUERY, first: int = 7, epochs: Any = EPOCHS) -> tuple[Segment, io.BytesIO]:
    file = io.BytesIO()
    return Segment(file, query, Epoch(first), epochs), file


def overwrite(file: io.BytesIO, data: bytes) -> None:
    file.seek(0)
    file.truncate()
    file.write(data)


def read_all(segment: Segment) -> list[tuple[bytes, ...]]:
    return [segment.manifests(Epoch(epoch)) for epoch in range(segment.first, segment.last + 1)]


@given(
    query=st.text(st.characters(codec="utf-8"), max_size=20),
    first=st.integers(0, 2**63 - 100),
    epochs=st.lists(st.lists(st.binary(max_size=50), max_size=5), min_size=1, max_size=8),
    data=st.data(),
)
def test_what_was_written_is_read_in_any_order(
    query: str, first: int, epochs: list[list[bytes]], data: st.DataObject
) -> None:
    segment, file = written(QueryId(query), first, epochs)
    assert (segment.first, segment.last) == (first, first + len(epochs) - 1)
    assert segment.size_bytes == len(file.getvalue())
    for index in data.draw(st.permutations(range(len(epochs)))):
        assert segment.manifests(Epoch(first + index)) == tuple(epochs[index])


def test_an_epoch_is_read_alone() -> None:
    disk = Disk()
    segment = Segment(disk.new_file(), QUERY, Epoch(0), [manifests_of(epoch) for epoch in range(50)])
    segment.manifests(Epoch(20))
    assert disk.bytes_read == segment.size_bytes / 50


def test_every_flipped_bit_is_noticed() -> None:
    segment, file = written()
    intact = file.getvalue()
    for at in range(len(intact)):
        for bit in range(8):
            overwrite(file, intact[:at] + bytes([intact[at] ^ 1 << bit]) + intact[at + 1 :])
            with pytest.raises(
                CorruptState, match=r"pending epochs 7 to 9 of query query-1 is damaged: .*; nothing is"
            ):
                read_all(segment)
    overwrite(file, intact)
    assert read_all(segment) == EPOCHS


def test_damage_to_one_epoch_leaves_the_others_readable() -> None:
    segment, file = written()
    overwrite(file, file.getvalue().replace(b"9/1/", b"9/x/"))
    assert segment.manifests(Epoch(7)) == EPOCHS[0]
    with pytest.raises(CorruptState, match="the checksum of epoch 9 does not match its contents; nothing is lost"):
        segment.manifests(Epoch(9))


def test_every_short_segment_is_noticed() -> None:
    segment, file = written()
    intact = file.getvalue()
    for length in range(len(intact)):
        overwrite(file, intact[:length])
        with pytest.raises(CorruptState, match=f"it ends after {length} of {len(intact)} bytes"):
            read_all(segment)


def test_what_is_no_segment_is_said_to_be_none() -> None:
    segment, file = written()
    overwrite(file, b"Obj\x01" * 1000)
    with pytest.raises(CorruptState, match="it is not a segment of pending epochs; nothing is lost: start the query"):
        segment.manifests(Epoch(7))


def test_another_format_version_is_named() -> None:
    segment, file = written()
    overwrite(file, file.getvalue()[:4] + struct.pack(">H", 2) + file.getvalue()[6:])
    with pytest.raises(CorruptState, match="its format version is 2, not 1"):
        segment.manifests(Epoch(7))


@pytest.mark.parametrize(
    ("query", "first", "said"),
    [
        (OTHER, 7, "it has epoch 7 of query query-2 where epoch 7 should be"),
        (QUERY, 8, "it has epoch 8 of query query-1 where epoch 7 should be"),
    ],
)
def test_an_intact_segment_in_the_place_of_another_is_noticed(query: QueryId, first: int, said: str) -> None:
    segment, file = written()
    overwrite(file, written(query, first)[1].getvalue())
    with pytest.raises(CorruptState, match=said):
        segment.manifests(Epoch(7))


def test_a_file_that_cannot_be_read_is_said_to_be_damaged() -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError(5, "Input/output error")

    segment = Segment(Broken(), QUERY, Epoch(7), EPOCHS)
    with pytest.raises(CorruptState, match=r"it cannot be read \(input/output error\)"):
        segment.manifests(Epoch(7))


def test_letting_go_of_a_segment_never_fails() -> None:
    class Broken(io.BytesIO):
        def close(self) -> None:
            super().close()
            raise OSError(5, "Input/output error")

    file = Broken()
    Segment(file, QUERY, Epoch(7), EPOCHS).close()
    assert file.closed


@pytest.mark.parametrize("room", range(0, 300, 7))
def test_a_segment_that_could_not_be_written_is_closed(room: int) -> None:
    disk = Disk(room)
    with pytest.raises(OSError, match="No space left"):
        Segment(disk.new_file(), QUERY, Epoch(7), EPOCHS)
    assert len(disk.files) == 1
    assert disk.open == []


def test_an_error_that_shows_only_when_buffers_are_written_out_is_not_missed() -> None:
    full = open("/dev/full", "w+b")  # noqa: SIM115
    with pytest.raises(OSError, match="No space left"):
        Segment(full, QUERY, Epoch(7), EPOCHS)
    assert full.closed
