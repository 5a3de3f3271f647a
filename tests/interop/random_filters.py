"""Random conditions in SQL on columns of random rows, most of them such that Spark skips rows by them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, islice
from typing import Any

from hypothesis.strategies import DrawFn

from tests.interop.random_rows import PATHS, RandomRows
from tests.interop.random_values import KINDS, Kind, chance, kept, pick

_OPERATORS = ["=", "<", "<=", ">", ">=", "<>", "<=>"]
_NOT = ["", "not "]
_STRUCTURES = ["record", "record.deep", "list", "dictionary", "records"]
_NUMBERS = ("byte", "short", "integer", "long", "float", "double")


def conditions(draw: DrawFn, rows: RandomRows, count: int) -> list[str]:
    """On rows of `random_rows.SCHEMA`: floating-point columns first, of which there is most to say, and then each path
    in its turn, from one of them on."""
    floats = [path for path, kind in PATHS.items() if kind.name in ("float", "double")]
    paths = [*PATHS, "structures"]
    start = pick(draw, range(len(paths)))
    asked = [_condition(draw, rows, path) for path in [*floats, *islice(cycle(paths), start, start + count)][:count]]
    return [condition for condition in asked if kept(draw)]


def _condition(draw: DrawFn, rows: RandomRows, path: str) -> str:
    first = _on_structure(draw, rows) if path == "structures" else _simple(draw, rows, path)
    if chance(draw, 15):
        return f"not ({first})"
    if chance(draw, 25):
        second = _simple(draw, rows, pick(draw, [path if path in PATHS else "c_double", *PATHS]))
        joined = f"({first}) {pick(draw, ['and', 'or'])} ({second})"
        return f"not ({joined})" if chance(draw, 30) else joined
    return first


def _simple(draw: DrawFn, rows: RandomRows, path: str) -> str:
    numbers = {name: rows.known[(f"c_{name}",)] for name in _NUMBERS}
    return comparison(draw, path, PATHS[path], rows.known[tuple(path.split("."))], numbers)


def comparison(draw: DrawFn, path: str, kind: Kind, known: Sequence[Any], numbers: Mapping[str, Sequence[Any]]) -> str:
    """A condition on one path with `known` values of its kind, and with those that `numbers` has of other kinds."""

    def literal() -> str:
        return kind.literal(pick(draw, known))

    def operator() -> str:
        return pick(draw, _OPERATORS)

    forms: list[Callable[[], str]] = [
        lambda: f"{path} {operator()} {literal()}",
        lambda: f"{path} {operator()} {literal()}",
        lambda: f"{literal()} {operator()} {path}",
        lambda: f"not ({path} {operator()} {literal()})",
        lambda: f"{path} in ({literal()}, {literal()}{pick(draw, ['', ', null'])})",
        lambda: f"{path} in ({', '.join(literal() for _ in range(12))})",
        lambda: f"{path} not in ({literal()}, {literal()})",
        lambda: f"{path} {pick(draw, _NOT)}between {literal()} and {literal()}",
        lambda: f"{path} is {pick(draw, _NOT)}null",
        lambda: f"{path} <=> null",
        lambda: f"coalesce({path}, {literal()}) = {literal()}",
    ]
    if kind.name in ("float", "double"):
        forms += [lambda: f"isnan({path})", lambda: f"{path} {operator()} {kind.name}('nan')"]
    if kind.name in _NUMBERS:
        # Spark compares in the wider type, or moves the cast to the literal.
        def of_another_type() -> str:
            other = pick(draw, _NUMBERS)
            return f"{path} {operator()} {KINDS[other].literal(pick(draw, [0, *numbers.get(other, [])]))}"

        forms.append(of_another_type)
    if kind.name == "string":

        def part() -> str:
            start = kind.literal(pick(draw, known)[: pick(draw, [0, 1, 2, 31, 32, 33, 5000])])
            return f"{pick(draw, ['startswith', 'endswith', 'contains'])}({path}, {start})"

        forms += [part] * 3
    return pick(draw, forms)()


def _on_structure(draw: DrawFn, rows: RandomRows) -> str:
    def literal(kind: str, *path: str) -> str:
        return KINDS[kind].literal(pick(draw, rows.known[path]))

    def element() -> str:
        return literal("double", "list", "element")

    def value() -> str:
        return literal("double", "records", "element", "x")

    def deep() -> str:
        number, day = literal("double", "record", "deep", "double"), literal("date", "record", "deep", "date")
        return f"named_struct('double', {number}, 'date', {day})"

    def entry() -> str:
        return f"dictionary[{literal('string', 'dictionary', 'key')}]"

    operator = pick(draw, _OPERATORS)
    forms: list[Callable[[], str]] = [
        lambda: f"{pick(draw, _STRUCTURES)} is {pick(draw, _NOT)}null",
        lambda: f"get(list, 0) {operator} {element()}",
        lambda: f"array_contains(list, {element()})",
        lambda: f"exists(list, e -> e {operator} {element()})",
        lambda: f"list {operator} array({element()})",
        lambda: f"{entry()} {operator} {literal('float', 'dictionary', 'value')}",
        lambda: f"records {operator} array(named_struct('x', {value()}))",
        lambda: f"array_contains(records.x, {value()})",
        lambda: f"size(list) = {pick(draw, [0, 1, 2, -1])}",
        lambda: f"record.deep {operator} {deep()}",
    ]
    return pick(draw, forms)()
