"""The model of the sink: entries, compacts, what it skips, where it fails, what it deletes."""

from __future__ import annotations

import pytest

from tests.spark_log.entries import SinkFile, decode, encode
from tests.spark_log.reader import Unreadable, committed_files
from tests.spark_log.sink import add_batch, expired


def file(number):
    return SinkFile(f"file:///t/{number}.parquet", 3, 1)


def log_of(batches, setting=10):
    log = {}
    for number in range(batches):
        assert add_batch(log, number, [file(number)], setting)
    return log


def test_every_interval_th_entry_has_all_lines():
    log = log_of(8, setting=3)
    assert list(log) == ["0", "1", "2.compact", "3", "4", "5.compact", "6", "7"]
    assert decode(log["4"]) == [file(4)]
    assert decode(log["5.compact"]) == [file(number) for number in range(6)]
    assert committed_files(log, 3) == [file(number).path for number in range(8)]


def test_an_empty_batch_has_an_entry():
    log = {}
    assert add_batch(log, 0, [])
    assert log == {"0": b"v1"}


@pytest.mark.parametrize("batch_id", [0, 4, 5])
def test_a_batch_up_to_the_newest_number_is_skipped_even_if_it_is_not_there(batch_id):
    log = log_of(4) | {"5": encode([file(5)])}
    before = dict(log)
    assert not add_batch(log, batch_id, [file(99)])
    assert log == before


def test_what_is_missing_is_noticed_at_the_compaction():
    log = log_of(33) | {"35": encode([])}
    for number in (36, 37, 38):
        assert add_batch(log, number, [file(number)])
    before = dict(log)
    with pytest.raises(Unreadable, match=r"^33 does not exist"):
        add_batch(log, 39, [file(39)])
    assert log == before


def test_a_compact_has_lines_as_spark_writes_them():
    line = file(0).line()
    log = {"0": f'v1\n{line[:-1]},"more":1}}\n'.encode(), "1": b"v1"}
    assert add_batch(log, 2, [], 3)
    assert log["2.compact"] == f"v1\n{line}".encode()


def test_directories_and_deleted_files_stay_in_compacts():
    marks = [SinkFile("file:///t/x", 0, 1, is_dir=True), SinkFile("file:///t/0.parquet", 3, 1, action="delete")]
    log = {"0": encode(marks)}
    assert add_batch(log, 1, [file(1)], 2)
    assert decode(log["1.compact"]) == [*marks, file(1)]


def test_a_running_sink_keeps_its_interval():
    log = {"19.compact": encode([])} | {str(number): encode([]) for number in range(20, 29)}
    other = dict(log)
    assert add_batch(log, 29, [])
    assert "29" in log
    assert add_batch(other, 29, [], interval=10)
    assert "29.compact" in other


def test_a_compact_is_enough_to_go_on():
    log = {name: body for name, body in log_of(22).items() if name in {"9.compact", "19.compact", "20", "21"}}
    for number in range(22, 30):
        assert add_batch(log, number, [file(number)])
    assert committed_files(log) == [file(number).path for number in range(30)]


def test_a_hundred_batches_are_kept():
    log = log_of(109)
    assert expired(log) == []
    add_batch(log, 109, [])
    # Those below 9.compact.
    assert expired(log) == [str(number) for number in range(9)]
    for number in range(110, 119):
        add_batch(log, number, [])
    assert len(expired(log)) == 9
    add_batch(log, 119, [])
    assert expired(log) == [*map(str, range(9)), "9.compact", *map(str, range(10, 19))]


def test_fewer_batches_are_kept_where_fewer_are_asked_for():
    log = log_of(9, setting=3) | {".lakecommit.json": b"{}"}
    # 8.compact is the newest; one batch before it there is 5.compact.
    assert expired(log, 3, retain=1) == ["0", "1", "2.compact", "3", "4"]
    for name in expired(log, 3, retain=1):
        del log[name]
    assert committed_files(log, 3) == [file(number).path for number in range(9)]
