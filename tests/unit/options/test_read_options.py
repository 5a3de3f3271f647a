"""Options of reading as Spark hands them over: defaults, bounds, contradictions, and those that are for writing."""

import pytest

from lakecommit.cli.verbs.explain import options as explained
from lakecommit.errors import InvalidInput
from lakecommit.options.page import markdown
from lakecommit.options.parsing import parse_options
from lakecommit.options.read_declarations import LATER_READING, LATEST, READING, WRITING
from lakecommit.options.read_parsing import parse_read_options

PATH = {"path": "s3://lake/orders"}


def parse(streaming=False, defaults=None, **options):
    return parse_read_options(PATH | options, streaming=streaming, defaults=defaults)


def refusal(streaming=False, defaults=None, **options):
    with pytest.raises(InvalidInput) as caught:
        parse(streaming, defaults, **options)
    return str(caught.value)


def test_defaults():
    options = parse(streaming=True)
    assert (options.path, options.table_format, options.columns, options.where) == (PATH["path"], None, None, None)
    assert (options.version_as_of, options.timestamp_as_of_ms) == (None, None)
    assert (options.starting_version, options.starting_timestamp_ms) == (None, None)
    assert (options.max_files, options.max_bytes) == (1000, None)
    assert (options.ignore_deletes, options.ignore_changes, options.skip_change_commits) == (False, False, False)
    assert (options.fail_on_data_loss, options.lease_ttl_ms) == (True, 6 * 3600 * 1000)
    assert (options.split_size_bytes, options.planner_memory_bytes) == (128 * 1024**2, 16 * 1024**2)


def test_what_is_given():
    options = parse(
        streaming=True,
        startingversion="latest",
        MAXFILESPERTRIGGER="7",
        maxBytesPerTrigger="10g",
        ignoreDeletes="TRUE",
        leaseTtl="0",
        columns="b, `a,c`",
        where="b > 1",
        **{"store.region": "eu-west-1", "fs.s3a.endpoint": "http://x:1"},
    )
    assert (options.starting_version, options.max_files, options.max_bytes) == (LATEST, 7, 10 * 1024**3)
    assert (options.ignore_deletes, options.lease_ttl_ms) == (True, 0)
    assert (options.columns, options.where) == (("b", "a,c"), "b > 1")
    assert (options.store_options["region"], options.store_options["endpoint"]) == ("eu-west-1", "http://x:1")
    assert parse(versionAsOf="0").version_as_of == 0


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01 00:00:01.9999z", 1999),
        ("1970-01-01 02:00:00+02:00", 0),
        ("1970-01-01T00:01 -00:30", 31 * 60_000),
        ("2026-01-31T12:00:00.123456Z", 1769860800123),
    ],
)
def test_times(text, time_ms):
    assert parse(timestampAsOf=text).timestamp_as_of_ms == time_ms


@pytest.mark.parametrize("text", ["", "2026-01-31", "2026-01-31 12:00:00", "12", "2026-13-31T12:00:00Z", "x"])
def test_times_that_do_not_say_their_zone_are_refused(text):
    assert "has to be a time with its zone" in refusal(timestampAsOf=text)


@pytest.mark.parametrize("text", ["59s", "31d", "6", "-1m"])
def test_leases_of_other_lengths_are_refused(text):
    assert "option leaseTtl is" in refusal(streaming=True, leaseTtl=text)


@pytest.mark.parametrize(
    ("streaming", "options"),
    [
        (False, {"versionAsOf": "1", "timestampAsOf": "2026-01-31T12:00:00Z"}),
        (True, {"startingVersion": "latest", "startingTimestamp": "2026-01-31T12:00:00Z"}),
        (True, {"skipChangeCommits": "true", "ignoreChanges": "true"}),
    ],
)
def test_contradictions(streaming, options):
    one, other = options
    assert f"options {one} and {other} contradict each other" in refusal(streaming, **options)


def test_an_option_that_is_off_contradicts_nothing():
    assert parse(streaming=True, skipChangeCommits="true", ignoreChanges="false").skip_change_commits


def test_options_of_the_other_kind_of_read_are_refused():
    assert "versionAsOf is for batch reads" in refusal(streaming=True, versionAsOf="1")
    assert "maxFilesPerTrigger is for streams" in refusal(maxFilesPerTrigger="1")


@pytest.mark.parametrize("name", sorted(WRITING))
def test_options_of_writes_are_refused_when_reading(name):
    assert refusal(**{name.lower(): "1"}) == f"option {name} is for writing; leave it out of a read"


@pytest.mark.parametrize("name", sorted(READING))
@pytest.mark.parametrize("streaming", [False, True])
def test_options_of_reads_are_refused_when_writing(name, streaming):
    with pytest.raises(InvalidInput, match=f"option {name} is for reading; leave it out of a write"):
        parse_options(PATH | {name.lower(): "1"}, streaming=streaming)


@pytest.mark.parametrize("name", LATER_READING)
def test_options_that_only_delta_has_say_what_to_do_instead(name):
    assert LATER_READING[name] in refusal(**{name: "1"})


@pytest.mark.parametrize(
    ("options", "near"),
    [({"versionAs": "1"}, "versionAsOf"), ({"splitsize_": "1"}, "splitSize"), ({"wher": "x"}, "where")],
)
def test_misspelt_options_are_refused_with_the_nearest(options, near):
    assert f"did you mean {near}?" in refusal(**options)


def test_other_refusals():
    with pytest.raises(InvalidInput, match="the read names no table"):
        parse_read_options({}, streaming=False)
    with pytest.raises(InvalidInput, match="is the name of a table"):
        parse_read_options({"table": "a.b"}, streaming=False)
    assert "property for a table" in refusal(**{"delta.appendOnly": "true"})
    assert "belongs to the process" in refusal(committerMemory="1m")
    assert "spark.lakecommit.path would read one table" in refusal(defaults={"path": "/t"})
    assert "option columns" in refusal(columns="a,A")


def test_a_session_sets_defaults_of_reads_and_of_writes_apart():
    session = {"splitSize": "1m", "compression": "snappy", "leaseTtl": "1h", "fs.s3a.endpoint.region": "eu-west-1"}
    assert parse(defaults=session).split_size_bytes == 1024**2
    assert parse(streaming=True, defaults=session).lease_ttl_ms == 3_600_000
    assert parse(defaults=session, splitSize="2m").split_size_bytes == 2 * 1024**2
    assert parse(defaults=session).store_options["region"] == "eu-west-1"
    assert parse_options(PATH, streaming=False, defaults=session).compression == "snappy"


def test_they_are_in_the_page_and_explained():
    assert "| `splitSize` | batch, stream | 128 MiB |" in markdown()
    assert "reading" in explained()["startingversion"].text
    assert "reading" not in explained()["path"].text
