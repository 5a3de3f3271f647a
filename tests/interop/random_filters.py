"""Random conditions in SQL on the columns of `random_rows`, most of them such that Spark skips rows by them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from tests.interop.random_rows import KINDS, PATHS, Kind, RandomRows

_OPERATORS = ["=", "<", "<=", ">", ">=", "<>", "<=>"]
_NESTED = ["record", "record.deep", "list", "dictionary", "records"]
_NUMBERS = ("byte", "short", "integer", "long", "float", "double")


def conditions(rng: random.Random, rows: RandomRows, count: int) -> list[str]:
    """Each path has its turn, floating-point ones more often: of these there is most to say."""
    floats = [path for path, kind in PATHS.items() if kind.name in ("float", "double")]
    paths = [*floats, *PATHS, "nested", *floats]
    return [_condition(rng, rows, paths[number % len(paths)]) for number in range(count)]


def _condition(rng: random.Random, rows: RandomRows, path: str) -> str:
    first = _nested(rng, rows) if path == "nested" else _simple(rng, rows, path)
    chance = rng.random()
    if chance < 0.15:
        return f"not ({first})"
    if chance < 0.35:
        second = _simple(rng, rows, rng.choice([path, rng.choice([*PATHS])]) if path in PATHS else "c_double")
        joined = f"({first}) {rng.choice(['and', 'or'])} ({second})"
        return f"not ({joined})" if rng.random() < 0.3 else joined
    return first


def _simple(rng: random.Random, rows: RandomRows, path: str) -> str:
    numbers = {name: rows.known.get(f"c_{name}", []) for name in _NUMBERS}
    return comparison(rng, path, PATHS[path], rows.known[path], numbers)


def comparison(
    rng: random.Random, path: str, kind: Kind, known: Sequence[Any], numbers: Mapping[str, Sequence[Any]]
) -> str:
    """A condition on one path with `known` values of its kind, and with those that `numbers` has of other kinds."""

    def literal() -> str:
        return kind.literal(rng.choice(known))

    forms = [
        lambda: f"{path} {rng.choice(_OPERATORS)} {literal()}",
        lambda: f"{path} {rng.choice(_OPERATORS)} {literal()}",
        lambda: f"{literal()} {rng.choice(_OPERATORS)} {path}",
        lambda: f"not ({path} {rng.choice(_OPERATORS)} {literal()})",
        lambda: f"{path} in ({literal()}, {literal()}{rng.choice(['', ', null'])})",
        lambda: f"{path} in ({', '.join(literal() for _ in range(12))})",
        lambda: f"{path} not in ({literal()}, {literal()})",
        lambda: f"{path} {rng.choice(['', 'not '])}between {literal()} and {literal()}",
        lambda: f"{path} is {rng.choice(['', 'not '])}null",
        lambda: f"{path} <=> null",
        lambda: f"coalesce({path}, {literal()}) = {literal()}",
    ]
    if kind.name in ("float", "double"):
        forms += [lambda: f"isnan({path})", lambda: f"{path} {rng.choice(_OPERATORS)} {kind.name}('nan')"]
    if kind.name in _NUMBERS:
        # Spark compares in the wider type, or moves the cast to the literal.
        other = rng.choice(_NUMBERS)
        value = rng.choice([*numbers.get(other, []), 0])
        forms += [lambda: f"{path} {rng.choice(_OPERATORS)} {KINDS[other].literal(value)}"]
    if kind.name == "string":
        text = rng.choice(known)
        start = kind.literal(text[: rng.randint(0, len(text))])
        forms += [lambda: f"{rng.choice(['startswith', 'endswith', 'contains'])}({path}, {start})"] * 3
    return rng.choice(forms)()


def _nested(rng: random.Random, rows: RandomRows) -> str:
    double = KINDS["double"].literal(rng.choice(rows.known["c_double"]))
    single = KINDS["float"].literal(rng.choice(rows.known["c_float"]))
    operator = rng.choice(_OPERATORS)
    return rng.choice(
        [
            f"{rng.choice(_NESTED)} is {rng.choice(['', 'not '])}null",
            f"get(list, 0) {operator} {double}",
            f"array_contains(list, {double})",
            f"exists(list, e -> e {operator} {double})",
            f"list {operator} array({double})",
            f"dictionary['a'] {operator} {single}",
            f"records {operator} array(named_struct('x', {double}))",
            f"array_contains(records.x, {double})",
            f"size(list) = {rng.randint(-1, 2)}",
            f"record.deep {operator} named_struct('double', {double}, 'date', date'1970-01-01')",
        ]
    )
