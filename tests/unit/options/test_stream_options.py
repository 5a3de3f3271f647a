"""Options of streams: how long and how much may be pending, event times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakecommit.errors import InvalidInput
from lakecommit.options.parsing import parse_options
from lakecommit.options.values import duration_ms

STREAM_OPTIONS = {
    "commitWait": "1s",
    "maxPendingEpochs": "1",
    "maxPendingFiles": "1",
    "maxPendingBytes": "1g",
    "backlogInterval": "1s",
    "eventTimeColumn": "ts",
    "watermarkDelay": "1s",
}
UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse(defaults=None, **options):
    return parse_options({"path": "/t"} | options, streaming=True, defaults=defaults or {})


def refusal(streaming=True, defaults=None, **options):
    with pytest.raises(InvalidInput) as caught:
        parse_options({"path": "/t"} | options, streaming=streaming, defaults=defaults or {})
    return str(caught.value)


@pytest.mark.parametrize("name", STREAM_OPTIONS)
def test_options_of_streams_are_refused_in_a_batch_write(name):
    assert f"option {name} is for streams" in refusal(streaming=False, **{name.lower(): STREAM_OPTIONS[name]})


def test_a_sessions_defaults_for_streams_leave_batch_writes_alone():
    options = parse_options({"path": "/t"}, streaming=False, defaults=STREAM_OPTIONS)
    assert (options.commit_wait_ms, options.event_time_column) == (30_000, None)


def test_all_are_read():
    options = parse(**STREAM_OPTIONS)
    assert (options.commit_wait_ms, options.backlog_interval_ms, options.watermark_delay_ms) == (1000, 1000, 1000)
    assert (options.max_pending_epochs, options.max_pending_files, options.max_pending_bytes) == (1, 1, 1024**3)
    assert options.event_time_column == "ts"


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("0", 0),
        ("0s", 0),
        ("500ms", 500),
        ("30s", 30_000),
        (" 30 S ", 30_000),
        ("2 minutes", 120_000),
        ("1 minute", 60_000),
        ("5min", 300_000),
        ("1h", 3_600_000),
        ("1h30m", 5_400_000),
        ("1 hour 30 minutes", 5_400_000),
        ("interval 10 seconds", 10_000),
        ("1 week", 604_800_000),
        ("365 days", 31_536_000_000),
    ],
)
def test_durations(text, duration):
    assert parse(commitWait=text).commit_wait_ms == duration


@pytest.mark.parametrize(
    "text", ["", "30", "00", "-1s", "1.5s", "s", "30 ks", "1 month", "interval", "30s,", "1s 5", "٣s", "366d"]
)
def test_durations_that_are_refused(text):
    message = refusal(commitWait=text)
    assert f"option commitWait is {text!r}, but has to be a duration such as 500ms, 30s or 2 minutes" in message


@given(st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(sorted(UNITS_MS)), st.sampled_from(["", " "]))))
def test_the_parts_of_a_duration_add_up(parts):
    text = " ".join(f"{number}{space}{unit}" for number, unit, space in parts)
    if parts:
        assert duration_ms(text) == sum(number * UNITS_MS[unit] for number, unit, _ in parts)
    else:
        with pytest.raises(ValueError):
            duration_ms(text)


def test_commits_are_not_spaced_by_more_than_a_day():
    assert parse(backlogInterval="24h").backlog_interval_ms == 86_400_000
    assert "up to a day" in refusal(backlogInterval="25h")


@pytest.mark.parametrize("name", ["maxPendingEpochs", "maxPendingFiles", "maxPendingBytes"])
@pytest.mark.parametrize("text", ["0", "-1", "", "many", "1.5", str(2**63)])
def test_limits_that_are_refused(name, text):
    assert f"option {name} is {text!r}, but has to be" in refusal(**{name: text})


@pytest.mark.parametrize(
    ("text", "name"), [("ts", "ts"), (" Order Time ", "Order Time"), ("`a,b`", "a,b"), ("a.b", "a.b")]
)
def test_event_time_columns(text, name):
    assert parse(eventTimeColumn=text).event_time_column == name


@pytest.mark.parametrize("text", ["", " ", "a,b", "`a", "``"])
def test_event_time_columns_that_are_refused(text):
    assert "the name of a timestamp, timestamp_ntz or date column" in refusal(eventTimeColumn=text)


def test_a_watermark_delay_needs_an_event_time():
    assert "watermarkDelay only works with eventTimeColumn" in refusal(watermarkDelay="0s")
    assert "watermarkDelay only works with eventTimeColumn" in refusal(watermarkdelay="10 minutes")


def test_a_sessions_watermark_delay_waits_for_a_query_with_event_times():
    defaults = {"watermarkDelay": "10 minutes"}
    assert parse(defaults).event_time_column is None
    assert parse(defaults, eventTimeColumn="ts").watermark_delay_ms == 600_000
    assert parse({"eventTimeColumn": "ts"}, watermarkDelay="1s").watermark_delay_ms == 1000
