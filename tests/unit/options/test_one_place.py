"""One declaration is all there is to an option: it is parsed, checked, named in messages, and in the page."""

from dataclasses import dataclass, fields

import pytest

from lakecommit.errors import InvalidInput
from lakecommit.options.declarations import DECLARATIONS, Options, ProcessOptions
from lakecommit.options.declaring import Applies, option
from lakecommit.options.page import markdown
from lakecommit.options.parsing import parse
from lakecommit.options.values import between, duration_ms
from lakecommit.progress.cadence import Pace
from lakecommit.progress.pending import PendingMemory
from lakecommit.writing.settings import WriterSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class WithOneMore(Options):
    longest_nap_ms: int = option(
        "longestNap",
        Applies.STREAM,
        between(duration_ms, 1000, 60_000),
        default="5s",
        values="a duration from 1s to 1 minute",
        help="How long the query may sleep.",
    )


def parsed(streaming=True, defaults=None, **options):
    return parse(WithOneMore, {"path": "/t", **options}, streaming=streaming, defaults=defaults)


def refusal(streaming=True, **options):
    with pytest.raises(InvalidInput) as caught:
        parsed(streaming, **options)
    return str(caught.value)


def test_a_new_option_is_parsed():
    assert parsed().longest_nap_ms == 5000
    assert parsed(longestnap="30s", commitWait="1s").longest_nap_ms == 30_000
    assert parsed(defaults={"longestNap": "7s"}).longest_nap_ms == 7000
    assert parsed(streaming=False, defaults={"longestNap": "7s"}).longest_nap_ms == 5000


def test_a_new_option_is_checked():
    assert refusal(longestNap="2 minutes") == (
        "option longestNap is '2 minutes', but has to be a duration from 1s to 1 minute"
    )
    assert "option longestNap is for streams" in refusal(streaming=False, longestNap="30s")
    assert "did you mean longestNap?" in refusal(longstNap="30s")
    assert "longestNap" in refusal(qqqq="x")


def test_a_new_option_is_in_the_page():
    row = "| `longestNap` | stream | 5s | a duration from 1s to 1 minute | How long the query may sleep. |"
    assert row in markdown(WithOneMore).splitlines()
    assert row not in markdown().splitlines()


def test_a_default_that_is_out_of_bounds_cannot_be_declared():
    with pytest.raises(ValueError):
        option("nap", Applies.STREAM, between(duration_ms, 0, 1000), default="5s", values="", help="")


def test_every_field_is_declared_once_or_taken_by_prefix():
    declared = [each.attribute for each in DECLARATIONS]
    assert [each.name for each in fields(Options)] == [*declared, "table_properties", "store_options"]
    assert len({each.name.lower() for each in DECLARATIONS}) == len(DECLARATIONS)


def test_who_is_asked_for_nothing_does_what_the_options_say():
    """Rooms that do not know the options have the same defaults."""
    options = Options(path="/t")
    pace = Pace()
    assert (pace.max_epochs, pace.max_files) == (options.max_pending_epochs, options.max_pending_files)
    assert (pace.max_size_bytes, pace.backlog_interval_ms) == (options.max_pending_bytes, options.backlog_interval_ms)
    writer = WriterSettings()
    assert writer.target_file_size_bytes == options.target_file_size_bytes
    assert (writer.max_records_per_file, writer.compression) == (options.max_records_per_file, options.compression)
    assert PendingMemory().limit_bytes == ProcessOptions().committer_memory_bytes


@pytest.mark.parametrize("settings", [Options, ProcessOptions, Pace, WriterSettings])
def test_settings_are_given_by_name_alone(settings):
    with pytest.raises(TypeError, match="positional"):
        settings(1)
