"""What expressions come to, at the values where engines differ. tests/interop compares all of it with Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from lakecommit.expressions.bound import Session
from lakecommit.expressions.errors import EvaluationFailed, Unsupported
from tests.unit.expressions.rows import bound, values

LENIENT = Session(ansi=False)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("f = f", [True, True, None]),
        ("f > 1e300", [False, True, None]),
        ("d = 0", [True, False, None]),
        ("d <=> NULL", [False, False, True]),
        ("i in (1, 2.5, null)", [True, None, None]),
        ("b and i > 0", [True, False, None]),
        ("b or i is null", [True, False, True]),
        ("i / 2", [0.5, -1.0, None]),
        ("i % 2", [1, 0, None]),
        ("i + i + 1", [3, -3, None]),
        ("l % -7L", [4, 0, None]),
        ("m * i + 1", [Decimal("2.50"), Decimal("7.50"), None]),
        ("cast(m as int)", [1, -3, None]),
        ("cast(m as decimal(5,1))", [Decimal("1.5"), Decimal("-3.3"), None]),
        ("length(t)", [3, 0, None]),
        ("upper(t)", ["ASS😀", "", None]),
        ("substring(t, -2, 1)", ["ß", "", None]),
        ("right(t, 1) || 'x'", ["😀x", "x", None]),
        ("s.`odd.name` = 'o' or S.X is null", [True, True, True]),
        ("s is null", [False, True, False]),
        ("items is null", [False, False, True]),
        ("year(a)", [1970, 0, None]),
        ("cast(a as string)", ["1970-01-01", "0000-12-31", None]),
        ("cast(p as date)", [dt.date(1969, 12, 31), dt.date(2024, 2, 29), None]),
        ("date_format(p, 'yyyy-MM-dd-HH')", ["1969-12-31-19", "2024-02-29-07", None]),
        ("date_trunc('quarter', p)", [-7_934_400_000_000, 1_704_085_200_000_000, None]),
        ("p >= '2024-02-29'", [False, True, None]),
        ("second(q)", [0, 59, None]),
        ("case when i < 0 then 1 / 0 else 2 end", None),
        ("case when i > 0 then 1 / i else 2 end", [1.0, 2.0, 2.0]),
        ("i > 0 and 1 / (i + 2) > 0", [True, False, None]),
        ("i is null or 10 / (i + 2) > 0", None),
        ("coalesce(i, l)", [1, -2, None]),
    ],
)
def test_values(text: str, found: list[object] | None) -> None:
    if found is None:
        with pytest.raises(EvaluationFailed, match="division by zero"):
            values(text)
    else:
        assert values(text) == found


@pytest.mark.parametrize(
    ("text", "lenient"),
    [
        ("y + 1Y", [-128, -127, None]),
        ("-y", [-127, -128, None]),
        ("l * 4", [0, -28, None]),
        ("i / 0", [None, None, None]),
        ("i % 0", [None, None, None]),
        ("cast(l as int)", [0, -7, None]),
        ("cast(d as bigint)", [0, 2**63 - 1, None]),
        ("cast(f as tinyint)", [1, 0, None]),
        ("cast(l as decimal(3,0))", [None, Decimal(-7), None]),
    ],
)
def test_what_does_not_fit_fails_only_with_ansi(text: str, lenient: list[object]) -> None:
    with pytest.raises(EvaluationFailed):
        values(text)
    assert values(text, LENIENT) == lenient


def test_with_ansi_a_whole_number_beside_a_float_makes_a_double() -> None:
    assert bound("i + f").type.name == "double"  # type: ignore[union-attr]
    assert bound("i + f", LENIENT).type.name == "float"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        ("t = 1", "= of string and int"),
        ("t > a", "> of string and date"),
        ("cast(t as int)", "a cast of string to int"),
        ("cast(d as string)", "a cast of double to string"),
        ("cast(d as decimal(10,2))", "a cast of double to decimal"),
        ("m / 2", "/ of decimal"),
        ("n * n", r"\* of decimal\(38,18\)"),
        ("n > 99999999999999999999999", "> of decimal"),
        ("a + 1", r"\+ of date and int"),
        ("p = q", "= of timestamp and timestamp_ntz"),
        ("hour(a)", r"hour\(date\)"),
        ("now() > p", "the function now of 0 arguments"),
        ("my_udf(i)", "the function my_udf of 1 arguments"),
        ("substring(t, i, 1)", r"substring\(string, int, int\)"),
        ("date_format(p, 'E')", "the pattern 'E'"),
        ("date_format(p, 'yyyyy')", "the pattern 'yyyyy'"),
        ("date_trunc('century', p)", "date_trunc to 'century'"),
        ("t like 'a\\\\%'", "LIKE with an escape"),
        ("s = s", "a value of the type struct"),
        ("items.x > 1", "x of array<int>"),
        ("gone > 1", "gone, which is not among the columns"),
        ("i and b", "int as a condition"),
        ("a < 'yesterday'", "the text 'yesterday' as date"),
        ("i in (1 / i)", "an element of IN that may fail"),
        ("d in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)", "IN with more than 10"),
        ("null = null", "= of void and void"),
        ("l < 99999999999999999999", "a whole number with one that is larger than any"),
        ("1 / i = null", "NULL beside what may fail"),
        ("1 / i + cast(null as int) > 0", "NULL beside what may fail"),
        ("i + 1 + i > 0", r"a constant inside of several \+"),
        ("i * (i * 2) > 0", r"a constant inside of several \*"),
        ("b and 1 > 2", "AND with a side that is the same for all rows"),
        ("cast(cast(i as float) as double)", "a cast of a whole number to float and then to double"),
        ("cast(n as int)", r"a cast of decimal\(38,18\) to int"),
        ("-n", r"- of decimal\(38,18\)"),
    ],
)
def test_what_is_not_exact_is_refused_before_any_row(text: str, construct: str) -> None:
    with pytest.raises(Unsupported, match=construct):
        bound(text)


def test_a_zone_that_is_not_known_is_not_guessed() -> None:
    assert bound("year(p) > 1").zoned and not bound("year(q) > 1").zoned
    for zone in (None, "Mars/Phobos"):
        with pytest.raises(Unsupported, match="time zone"):
            values("year(p)", zone=zone)


def test_clocks_that_are_put_forward_and_back() -> None:
    texts = [f"cast(timestamp_ntz '2024-{day}' as timestamp)" for day in ("03-10 02:30:00", "11-03 01:30:00")]
    hours = [(values(text)[0] // 3_600_000_000) % 24 for text in texts]
    # What is left out in spring is an hour later, what comes twice in autumn the first of both.
    assert hours == [7, 5]


@pytest.mark.parametrize("text", ["\u019b", "\ua7cb", "ΑΣ"])
def test_letters_of_which_versions_of_unicode_may_differ(text: str) -> None:
    """The first has an upper case since Unicode 16, the second is one since then; the third depends on what follows."""
    with pytest.raises(EvaluationFailed, match="versions of Unicode"):
        values(f"lower('{text}')")


def test_zones_of_which_databases_differ_are_not_guessed_before_1980() -> None:
    long_ago = "cast(timestamp_ntz '1930-01-01' as timestamp)"
    with pytest.raises(EvaluationFailed, match="Europe/Amsterdam"):
        values(long_ago, zone="Europe/Amsterdam")
    assert values(long_ago.replace("1930", "1990"), zone="Europe/Amsterdam")[0] == 631_148_400_000_000
    assert values(long_ago, zone="Europe/Brussels")[0] == -1_262_304_000_000_000


def test_case_sensitive_sessions() -> None:
    assert values("I", Session()) == values("i")
    with pytest.raises(Unsupported, match="I, which is not among the columns"):
        bound("I", Session(case_sensitive=True))
