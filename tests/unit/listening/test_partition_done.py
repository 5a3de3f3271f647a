"""Partitions are marked done once the watermark has passed their end."""

from __future__ import annotations

import asyncio
import logging
import uuid
from datetime import datetime, timedelta, timezone

import pytest

from lakecommit import PartitionDone
from lakecommit.clock import SystemClock
from lakecommit.errors import InvalidInput
from lakecommit.listening.api import CommittedSnapshot, Partition
from lakecommit.listening.calls import call_in_thread
from tests.lake import Named

from .lake import DAY_US, by_day, place_of

HOUR_PATTERN = "$day $hour:00"
HOUR_FORMAT = "%Y-%m-%d %H:%M"


def utc(*parts):
    return datetime(*parts, tzinfo=timezone.utc)


class Marks:
    """Where `_SUCCESS` was put and who was called, in order."""

    def __init__(self):
        self.directories = []
        self.calls = []

    def mark(self, directories):
        self.directories += directories

    def on_done(self, table, values):
        self.calls.append((table, dict(values)))


def snapshot(marks, watermark, *partitions, table="s3://lake/orders", query="q"):
    found = tuple(
        Partition(values, "/".join(f"{name}={value}" for name, value in values.items())) for values in partitions
    )
    return CommittedSnapshot(table, 1, query, 0, 0, len(found), 1, 1, watermark, found, marks.mark)


def day(text):
    return {"day": text}


def test_a_partition_is_done_when_the_watermark_has_reached_its_end():
    marks = Marks()
    done = PartitionDone("$day", on_done=marks.on_done)
    done.on_snapshot(snapshot(marks, utc(2026, 1, 1, 12), day("2026-01-01"), day("2026-01-02")))
    done.on_snapshot(snapshot(marks, utc(2026, 1, 1, 23, 59, 59), day("2026-01-01")))
    assert marks.directories == []
    done.on_snapshot(snapshot(marks, utc(2026, 1, 2)))
    assert marks.directories == ["day=2026-01-01"]
    assert marks.calls == [("s3://lake/orders", {"day": "2026-01-01"})]
    done.on_snapshot(snapshot(marks, utc(2026, 1, 2, 1)))
    assert marks.directories == ["day=2026-01-01"], "once"
    done.on_snapshot(snapshot(marks, utc(2026, 1, 9)))
    assert marks.directories == ["day=2026-01-01", "day=2026-01-02"]


def test_the_time_of_a_partition_comes_from_several_columns_in_any_case():
    marks = Marks()
    done = PartitionDone("${DAY} $Hour:00", formatter=HOUR_FORMAT, interval=timedelta(hours=1))
    eight = {"region": "EU", "day": "2026-01-01", "hour": "08"}
    nine = eight | {"hour": "9"}
    done.on_snapshot(snapshot(marks, utc(2026, 1, 1, 9), eight, nine))
    assert marks.directories == ["region=EU/day=2026-01-01/hour=08"]
    done.on_snapshot(snapshot(marks, utc(2026, 1, 1, 10)))
    assert marks.directories[1:] == ["region=EU/day=2026-01-01/hour=9"]


def test_a_zone_in_the_pattern_counts():
    marks = Marks()
    done = PartitionDone("$day +0200", formatter="%Y-%m-%d %z")
    done.on_snapshot(snapshot(marks, utc(2026, 1, 1, 21, 59), day("2026-01-01")))
    assert marks.directories == []
    done.on_snapshot(snapshot(marks, utc(2026, 1, 1, 22)))
    assert marks.directories == ["day=2026-01-01"]


@pytest.mark.parametrize(
    ("formatter", "values", "begin"),
    [
        ("%Y%m%d", ("2026", "1", "11"), utc(2026, 1, 11)),
        ("%Y%m%d", ("2026", "11", "1"), utc(2026, 11, 1)),
        ("%Y%m%d", ("2026", "1", "1"), utc(2026, 1, 1)),
        ("%Y%m%d", ("2026", "11", "12"), utc(2026, 11, 12)),
        ("%Y%m%d", ("2026", "01", "02"), utc(2026, 1, 2)),
        ("%Y%m%d", ("2026", "13", "1"), None),
        ("%Y%j", ("2026", "7", ""), utc(2026, 1, 7)),
        ("%Y%j", ("2026", "70", ""), utc(2026, 3, 11)),
        ("%G%V%u", ("2026", "12", "1"), utc(2026, 3, 16)),
        ("%G%V%u", ("2026", "2", "1"), None),
        ("%Y%j%H", ("2026", "5", "7"), None),
        ("%Y%m%dT%H%z", ("20260102T03", "Z", ""), utc(2026, 1, 2, 3)),
        ("%Y%m%dT%H%z", ("20260102T03", "+02:00", ""), utc(2026, 1, 2, 1)),
        ("%Y%b%d", ("2026", "JAN", "5"), utc(2026, 1, 5)),
        ("%d%b%Y", ("5Jan2026", "", ""), utc(2026, 1, 5)),
        ("%Y-%m-%d", ("2026-", "1-", "5"), utc(2026, 1, 5)),
        ("%Y-%m-%d %H%M", ("2026-1-5 ", "930", ""), utc(2026, 1, 5, 9, 30)),
        ("%Y-%m-%d %H%M", ("2026-1-5 ", "112", ""), utc(2026, 1, 5, 1, 12)),
        ("%d%m%Y", ("1022026", "", ""), utc(2026, 2, 1)),
    ],
)
def test_numbers_side_by_side_are_padded_and_never_taken_for_others(formatter, values, begin):
    marks = Marks()
    done = PartitionDone("$a$b$c", formatter=formatter, interval=timedelta(minutes=1))
    named = dict(zip("abc", values, strict=True))
    if begin is not None:
        done.on_snapshot(snapshot(marks, begin, named))
        assert marks.directories == []
        done.on_snapshot(snapshot(marks, begin + timedelta(minutes=1)))
        assert len(marks.directories) == 1
    else:
        done.on_snapshot(snapshot(marks, utc(2999, 1, 1), named))
        assert marks.directories == []


def test_late_rows_make_a_partition_done_once_more():
    marks = Marks()
    done = PartitionDone("$day")
    done.on_snapshot(snapshot(marks, utc(2026, 1, 3), day("2026-01-01")))
    done.on_snapshot(snapshot(marks, utc(2026, 1, 3), day("2026-01-01")))
    assert marks.directories == ["day=2026-01-01"] * 2


def test_open_partitions_survive_a_restart():
    marks = Marks()
    before = PartitionDone("$day")
    before.on_snapshot(snapshot(marks, utc(2026, 1, 2), day("2026-01-01"), day("2026-01-02"), day("2026-01-03")))
    state = before.state("s3://lake/orders", "q")
    assert state == {
        "open": [{"directory": f"day={each}", "values": day(each)} for each in ("2026-01-02", "2026-01-03")]
    }
    after = PartitionDone("$day")
    after.restore("s3://lake/orders", "q", state)
    after.on_snapshot(snapshot(marks, utc(2026, 1, 3)))
    assert marks.directories == ["day=2026-01-01", "day=2026-01-02"]
    assert after.state("s3://lake/orders", "another") == {"open": []}


def test_what_was_open_before_a_column_was_renamed_is_left_unmarked_with_one_warning(caplog):
    marks = Marks()
    before = PartitionDone("$day")
    before.on_snapshot(snapshot(marks, utc(2026, 1, 1), *(day(f"2026-01-{number:02d}") for number in range(1, 8))))
    after = PartitionDone("$dt")
    with caplog.at_level(logging.WARNING, "lakecommit.listening"):
        after.restore("s3://lake/orders", "q", before.state("s3://lake/orders", "q"))
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "7 partitions that were not done yet have no column dt, which pattern '$dt' names, but day: they are never "
        "marked unless rows come for them; if a column was renamed, put _SUCCESS into them yourself: "
        "day=2026-01-01, day=2026-01-02, day=2026-01-03, day=2026-01-04, day=2026-01-05, …"
    ]
    assert after.state("s3://lake/orders", "q") == {"open": []}
    after.on_snapshot(snapshot(marks, utc(2026, 1, 9), {"dt": "2026-01-08"}))
    assert marks.directories == ["dt=2026-01-08"], "it goes on"


def test_queries_are_judged_each_by_itself():
    marks = Marks()
    done = PartitionDone("$day")
    done.on_snapshot(snapshot(marks, utc(2026, 1, 1), day("2026-01-01"), query="behind"))
    done.on_snapshot(snapshot(marks, utc(2026, 1, 9), query="ahead"))
    assert marks.directories == []


def test_what_goes_wrong_is_done_again_and_the_rest_is_not_forgotten():
    marks = Marks()
    failures = [ValueError("no")]

    def on_done(table, values):
        if failures and values["day"] == "2026-01-02":
            raise failures.pop()
        marks.on_done(table, values)

    done = PartitionDone("$day", on_done=on_done)
    told = snapshot(marks, utc(2026, 1, 9), day("2026-01-01"), day("2026-01-02"), day("2026-01-03"))
    with pytest.raises(ValueError, match="no"):
        done.on_snapshot(told)
    assert [values["day"] for _, values in marks.calls] == ["2026-01-01"]
    assert len(done.state("s3://lake/orders", "q")["open"]) == 2
    done.on_snapshot(told)
    assert {values["day"] for _, values in marks.calls} == {"2026-01-01", "2026-01-02", "2026-01-03"}
    assert done.state("s3://lake/orders", "q") == {"open": []}


def test_partitions_of_no_time_are_left_alone_with_one_warning(caplog):
    marks = Marks()
    done = PartitionDone("$day")
    odd = [day(None), day("unknown"), day("2026-13-01"), day("9999-12-31")]
    with caplog.at_level(logging.WARNING, "lakecommit.listening"):
        for _ in range(2):
            done.on_snapshot(snapshot(marks, utc(2026, 1, 9), *odd, day("2026-01-01")))
    assert set(marks.directories) == {"day=2026-01-01"}
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "partition {'day': None} has no time by pattern '$day' and formatter '%Y-%m-%d': neither it nor any other "
        "like it is ever marked"
    ]


def test_without_a_watermark_it_says_what_is_missing(caplog):
    marks = Marks()
    done = PartitionDone("$day")
    with caplog.at_level(logging.WARNING, "lakecommit.listening"):
        for _ in range(2):
            done.on_snapshot(snapshot(marks, None, day("2026-01-01")))
    assert [record.getMessage().rpartition("; ")[2] for record in caplog.records] == ["set its option eventTimeColumn"]
    done.on_snapshot(snapshot(marks, utc(2026, 1, 2)))
    assert marks.directories == ["day=2026-01-01"], "what was seen before is not forgotten"


def test_columns_that_the_table_is_not_partitioned_by_are_refused_by_name():
    done = PartitionDone(HOUR_PATTERN, formatter=HOUR_FORMAT)
    with pytest.raises(InvalidInput, match="is partitioned by day; correct it, or give the listener tables="):
        done.on_snapshot(snapshot(Marks(), utc(2026, 1, 2), day("2026-01-01")))
    flat = CommittedSnapshot("t", 1, "q", 0, 0, 1, 1, 1, None, ())
    with pytest.raises(InvalidInput, match="which is not partitioned"):
        done.on_snapshot(flat)


def test_tables_that_it_is_not_for_are_left_alone(tmp_path):
    marks = Marks()
    done = PartitionDone("$day", tables=["s3://lake/orders/", f"file://{tmp_path}/t", str(tmp_path / "x" / ".." / "u")])
    for table in ("s3://lake/orders", f"{tmp_path}/t", f"{tmp_path}/u"):
        done.on_snapshot(snapshot(marks, utc(2026, 1, 9), day("2026-01-01"), table=table))
    done.on_snapshot(snapshot(marks, utc(2026, 1, 9), {"region": "EU"}, table="s3://lake/regions"))
    assert marks.directories == ["day=2026-01-01"] * 3


@pytest.mark.parametrize(
    ("given", "table"),
    [
        ("S3://lake/orders", "s3://lake/orders"),
        (" s3://lake/orders ", "s3://lake/orders"),
        ("s3://lake/orders", "s3a://lake/orders"),
        ("s3a://lake/orders/", "s3://lake/orders"),
        ("s3://lake//orders", "s3://lake/orders"),
        ("abfss://lake/orders", "az://lake/orders"),
        ("file:/lake//orders", "/lake/orders"),
    ],
)
def test_a_table_is_meant_however_it_is_spelt(given, table, caplog):
    marks = Marks()
    done = PartitionDone("$day", tables=[given])
    with caplog.at_level(logging.WARNING, "lakecommit.listening"):
        done.on_snapshot(snapshot(marks, utc(2026, 1, 9), day("2026-01-01"), table=table))
        done.on_snapshot(snapshot(marks, utc(2026, 1, 9), day("2026-01-01"), table="s3://lake/others"))
    assert marks.directories == ["day=2026-01-01"]
    assert not caplog.records


def test_a_single_table_need_not_be_in_a_list():
    marks = Marks()
    PartitionDone("$day", tables="s3://lake/orders").on_snapshot(snapshot(marks, utc(2026, 1, 9), day("2026-01-01")))
    assert marks.directories == ["day=2026-01-01"]


def test_tables_of_which_none_is_met_are_said_once(caplog):
    marks = Marks()
    done = PartitionDone("$day", tables=["s3://lake/ordres", "s3://lake/customers"])
    with caplog.at_level(logging.WARNING, "lakecommit.listening"):
        done.on_snapshot(snapshot(marks, utc(2026, 1, 9), {"region": "EU"}, table="s3://lake/regions"))
        assert not caplog.records, "it has other columns, and cannot be meant"
        for table in ("s3://lake/orders", "s3://lake/events"):
            done.on_snapshot(snapshot(marks, utc(2026, 1, 9), day("2026-01-01"), table=table))
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "the partitions of this table are not marked: it is not in tables=['s3://lake/customers', 's3://lake/ordres'], "
        "and no snapshot of those has come so far; correct tables if this one is meant"
    ]
    assert marks.directories == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pattern": "day"}, r"names no partition column; write \$column"),
        ({"pattern": "$day", "formatter": "%Y-%Q"}, "cannot be used"),
        ({"pattern": "$m-$d", "formatter": "%m-%d"}, "says no year; add %Y"),
        ({"pattern": "$hour", "formatter": "%H"}, "says no year; add %Y"),
        ({"pattern": "$w $d", "formatter": "%U %a"}, "says no year; add %Y"),
        ({"pattern": "$y-$w", "formatter": "%Y-%W"}, "%U and %W need a weekday"),
        ({"pattern": "$day EST", "formatter": "%Y-%m-%d %Z"}, "has %Z, which names a zone and no time; use %z"),
        ({"pattern": "$day", "interval": timedelta(0)}, "give the time that a partition spans"),
        ({"pattern": "$day", "name": "partition done"}, "letters, digits and hyphens"),
        ({"pattern": "$day", "tables": [""]}, "the location is empty"),
    ],
)
def test_what_cannot_be_meant_is_refused_when_it_is_made(given, message):
    with pytest.raises(InvalidInput, match=message):
        PartitionDone(**given)


@pytest.mark.parametrize(
    "formatter", ["%Y", "%y%m%d", "%G-W%V-%u", "%Y-%W-%w", "%c", "%x", "%Y-%j", "%d %b %Y %I %p", "%Y %%Z", "%Y-%m %z"]
)
def test_formatters_that_say_a_year_are_taken(formatter):
    PartitionDone("$day", formatter=formatter)


def test_many_open_partitions_cost_nothing_until_they_are_due(monkeypatch):
    marks = Marks()
    done = PartitionDone("$day")
    days = [f"{2000 + number // 300}-{1 + number % 12:02d}-{1 + number % 25:02d}" for number in range(5000)]
    partitions = [day(each) for each in dict.fromkeys(days)]
    done.on_snapshot(snapshot(marks, utc(1999, 1, 1), *partitions))
    looked = []
    inner = PartitionDone._end_of
    monkeypatch.setattr(PartitionDone, "_end_of", lambda *given: looked.append(1) or inner(*given))
    for number in range(100):
        done.on_snapshot(snapshot(marks, utc(1999, 1, 1) + timedelta(minutes=number), day("2000-01-01")))
    assert (looked, marks.directories) == ([], [])


def test_success_files_are_put_beside_the_files_by_the_committer_itself(tmp_path):
    """With real threads and a real store; the second driver goes on with what the first one left open."""

    async def scenario(location):
        marks = Marks()
        lake = by_day(SystemClock(), location)
        first = lake.committer(PartitionDone("$day", on_done=marks.on_done), call=call_in_thread)
        await lake.epoch(first, 0, Named(days=("1970-01-02", "1970-01-03", "1970-01-02"), event_time_us=DAY_US))
        await lake.epoch(first, 1, Named(days=(None,), event_time_us=2 * DAY_US))
        await first.settle_listeners()
        assert await successes(lake) == ["day=1970-01-02/_SUCCESS"]
        second = lake.committer(PartitionDone("$day", on_done=marks.on_done), call=call_in_thread)
        await lake.epoch(second, 2, Named(days=(), event_time_us=None))
        await lake.epoch(second, 3, Named(days=("1970-01-09",), event_time_us=4 * DAY_US))
        await second.settle_listeners()
        assert await successes(lake) == ["day=1970-01-02/_SUCCESS", "day=1970-01-03/_SUCCESS"]
        assert [values["day"] for _, values in marks.calls] == ["1970-01-02", "1970-01-03"]
        place = await place_of(lake, "partition-done")
        assert place["epoch"] == 3
        assert [each["directory"] for each in place["state"]["open"]] == ["day=1970-01-09"]
        assert (await lake.store.get("day=1970-01-02/_SUCCESS")).body == b""

    async def successes(lake):
        days = [f"day=1970-01-0{number}" for number in range(1, 10)]
        return [path for each in days for path in await lake.paths(each) if path.endswith("_SUCCESS")]

    for location in (str(tmp_path / "table"), f"memory://{uuid.uuid4().hex}/table"):
        asyncio.run(scenario(location))


def test_only_directories_of_partitions_can_be_marked():
    refused = []

    class Hostile:
        name = "hostile"

        def on_snapshot(self, told):
            for directory in ("_delta_log", "", "..", "day=1/..", "/day=1", "_lakecommit/users"):
                try:
                    told.mark_success([directory])
                except InvalidInput:
                    refused.append(directory)

    async def scenario():
        lake = by_day(SystemClock(), f"memory://{uuid.uuid4().hex}/table")
        committer = lake.committer(Hostile(), call=call_in_thread)
        await lake.epoch(committer, 0)
        await committer.settle_listeners()
        assert len(refused) == 6
        assert not [path for path in await lake.paths("_delta_log") if path.endswith("_SUCCESS")]

    asyncio.run(scenario())
