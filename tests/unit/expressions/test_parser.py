"""What is read as which expression, and what is refused with its name and its place."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakecommit.expressions.errors import Unsupported
from lakecommit.expressions.parser import parse
from lakecommit.expressions.syntax import Call, Cast, Literal, Reference, references, sql
from lakecommit.schema import Primitive


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a or b and not c = 1", "(a OR (b AND (NOT (c = 1))))"),
        ("a = b is null", "((a = b) IS NULL)"),
        ("a + b * -c - 1", "((a + (b * (- c))) - 1)"),
        ("a - -1 % 2", "(a - (-1 % 2))"),
        ("x between 1 and 2 and y", "(((x >= 1) AND (x <= 2)) AND y)"),
        ("x not in (1, 2) or y not like 'a%'", "((NOT (x IN (1, 2))) OR (NOT (y LIKE 'a%')))"),
        ("s . a <> 3", "(NOT (s.a = 3))"),
        ("`odd name`.`b``c` == 1", "(`odd name`.`b``c` = 1)"),
        ("a || b || c", "concat(concat(a, b), c)"),
        ("case x when 1 then 'a' end", "CASE WHEN (x = 1) THEN 'a' ELSE NULL END"),
        ("a is not distinct from b", "(NOT (NOT (a <=> b)))"),
        ("int(x) > year(date(p))", "(CAST(x AS INT) > year(CAST(p AS DATE)))"),
        ("!a", "(NOT a)"),
        ("date > DATE '2020-01-31'", "(date > DATE '2020-01-31')"),
        (
            "p < TIMESTAMP '2020-01-31 01:02:03.5'",
            "(p < CAST(TIMESTAMP_NTZ '2020-01-31 01:02:03.500000' AS TIMESTAMP))",
        ),
    ],
)
def test_precedence(text: str, read: str) -> None:
    assert sql(parse(text)) == read
    # What is shown is read as the same again.
    assert parse(sql(parse(text))) == parse(text)


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("1", 1, "integer"),
        ("-2147483648", -(2**31), "integer"),
        ("2147483648", 2**31, "long"),
        ("9223372036854775808", Decimal(2**63), "decimal(19,0)"),
        ("1Y", 1, "byte"),
        ("1s", 1, "short"),
        ("1L", 1, "long"),
        ("00.50", Decimal("0.50"), "decimal(2,2)"),
        ("1.", Decimal(1), "decimal(1,0)"),
        (".05", Decimal("0.05"), "decimal(2,2)"),
        ("12BD", Decimal(12), "decimal(2,0)"),
        ("1e3", 1000.0, "double"),
        ("1.5D", 1.5, "double"),
        ("0.1f", 0.10000000149011612, "float"),
        ("true", True, "boolean"),
        ("NULL", None, "void"),
        (r"'a\n\'\\\%\u00e9\101'", "a\n'\\\\%éA", "string"),
        ("'it''s'", "it's", "string"),
        ('"a""b"', 'a"b', "string"),
        ("DATE '1969-12-31'", -1, "date"),
    ],
)
def test_literals(text: str, value: object, kind: str) -> None:
    assert parse(text) == Literal(value, Primitive(kind))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "construct", "place"),
    [
        ("a > (select 1)", "'select'", 5),
        ("interval '1' day", "the literal interval '1'", 0),
        ("a[0]", "'[0]'", 1),
        ("a div 2", "'div'", 2),
        ("a rlike 'x'", "'rlike'", 2),
        ("a like 'x' escape '!'", "'escape'", 11),
        ("a = 'x' 'y'", "strings side by side", 8),
        ("cast(a as array<int>)", "the type array", 10),
        ("cast(a as decimal(39,0))", "the type decimal(39,0)", 10),
        ("a -- b", "'-- b'", 2),
        ("300Y", "the number 300Y", 0),
        ("1e400", "out of range", 0),
        ("DATE '2020-2-1'", "DATE '2020-2-1'", 0),
        ("DATE '2021-02-29'", "DATE '2021-02-29'", 0),
        ("a.f(1)", "the function a.f", 0),
        ("a and", "an unfinished expression", 5),
        ("a b", "'b'", 2),
        ("+a", "a unary +", 0),
        ("x -> 1", "'>'", 3),
        ("1a", "'1a'", 0),
        ("exists(x)", "", None),
    ],
)
def test_what_is_not_read_is_named_with_its_place(text: str, construct: str, place: int | None) -> None:
    if place is None:
        assert isinstance(parse(text), Call)
        return
    with pytest.raises(Unsupported) as refused:
        parse(text)
    assert construct in str(refused.value) and refused.value.position == place


def test_references() -> None:
    assert references(parse("a > 1 and S.b + a < cast(c as int)")) == (
        Reference(("a",)),
        Reference(("S", "b")),
        Reference(("c",)),
    )


_LEAVES = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(lambda n: Literal(n, Primitive("integer" if abs(n) < 2**31 else "long"))),
    st.text(st.characters(exclude_categories=["Cs"])).map(lambda text: Literal(text, Primitive("string"))),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(lambda name: Reference((name,))),
    st.integers(-700_000, 2_900_000).map(lambda days: Literal(days, Primitive("date"))),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda number: Literal(number, Primitive("double"))),
)
_SIGNS = st.sampled_from(["and", "or", "=", "<=>", "<", ">=", "+", "-", "*", "/", "%", "like"])
_TREES = st.recursive(
    _LEAVES,
    lambda parts: st.one_of(
        st.builds(lambda sign, left, right: Call(sign, (left, right)), _SIGNS, parts, parts),
        st.builds(lambda part: Call("not", (part,)), parts),
        st.builds(lambda part: Call("isnull", (part,)), parts),
        st.builds(lambda part: Cast(part, Primitive("decimal(10,2)")), parts),
        st.builds(lambda value, options: Call("in", (value, *options)), parts, st.lists(parts, min_size=1)),
        st.builds(lambda one, two, three: Call("case", (one, two, three)), parts, parts, parts),
    ),
)


@given(_TREES)
def test_what_is_shown_is_read_as_the_same(tree: Call) -> None:
    assert parse(sql(tree)) == tree
