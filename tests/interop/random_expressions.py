"""Random expressions over random rows, in which every part has the type that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.interop.random_rows import PATHS
from tests.interop.random_values import chance, kept, pick

T = TypeVar("T")

_COLUMNS: dict[str, list[str]] = {}
for _path, _kind in PATHS.items():
    _COLUMNS.setdefault(_kind.name.partition("(")[0], []).append(_path)

_INTEGERS = ["byte", "short", "integer", "long"]
_NUMBERS = [*_INTEGERS, "float", "double", "decimal"]
_SQL = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "INT",
    "long": "bigint",
    "float": "FLOAT",
    "double": "double",
}
_ALIKE = ["number", "number", "number", "string", "date", "timestamp", "timestamp_ntz", "boolean"]
_LETTERS = ["a", "b", " ", "ä", "ß", "Σ", "😀", "\\n", "\\'", '\\"', "''", "\\\\", "\\u00e9", "\\101", "%", "_", "\t"]
_PATTERNS = ["yyyy", "yyyy-MM", "yyyy-MM-dd", "yyyy-MM-dd-HH", "dd/MM/yyyy HH:mm:ss", "HH"]
_UNITS = ["YEAR", "quarter", "Month", "WEEK", "mon", "YY"]


@st.composite
def expressions(draw: DrawFn, kinds: Sequence[str], count: int, depth: int = 3) -> list[str]:
    """Nearly so many, each of one of these kinds. Parts are nested at most as deep as `depth` says."""
    made = _Expressions(draw)
    texts = [made.make(pick(draw, kinds), depth) for _ in range(count)]
    return [text for text in texts if kept(draw)]


class _Expressions:
    def __init__(self, draw: DrawFn) -> None:
        self._draw = draw

    def make(self, kind: str, depth: int) -> str:
        if kind == "number":
            kind = self._pick(_NUMBERS)
        if depth <= 0 or not chance(self._draw, 85):
            return self._literal(kind) if chance(self._draw, 30) else self._column(kind)
        if chance(self._draw, 12):
            return self._choice(kind, depth - 1)
        made: dict[str, list[Callable[[int], str]]] = {
            "boolean": [self._comparison, self._comparison, self._logic, self._logic, self._null, self._in, self._like],
            "string": [self._string],
            "date": [self._date],
            "timestamp": [self._timestamp],
            "timestamp_ntz": [lambda deep: f"CAST({self.make('date', deep)} AS TIMESTAMP_NTZ)"],
            "integer": [self._arithmetic, self._part, self._cast],
        }
        return self._pick(made.get(kind, [self._arithmetic, self._arithmetic, self._cast]))(depth - 1)

    def _pick(self, options: Sequence[T]) -> T:
        return pick(self._draw, options)

    def _column(self, kind: str) -> str:
        name = self._pick(_COLUMNS[kind])
        if "." not in name and chance(self._draw, 10):
            return "`" + name + "`"
        return self._pick([name, name.upper()])

    def _literal(self, kind: str) -> str:
        small = self._pick([0, 1, 2, 3, -1, 10, 100, 127, -128])
        match kind:
            case "byte" | "short" | "long":
                return f"{small}{ {'byte': 'Y', 'short': 'S', 'long': 'L'}[kind] }"
            case "integer":
                return str(self._pick([small, 2147483647, -2147483648, 2147483648, 99999999999999999999]))
            case "float" | "double":
                return self._pick(["1.5", "0.0", "-0.0", "1e10", "3.402823e38", "1e-45", "0.1"]) + kind[0].upper()
            case "decimal":
                return self._pick(["1.5", "0.05", "-2.25", "1.", ".5", "123456.789", "0.0", "7BD", "00.50"])
            case "string":
                return "'" + "".join(self._pick(_LETTERS) for _ in range(self._pick([0, 1, 2, 3, 4]))) + "'"
            case "boolean":
                return self._pick(["true", "FALSE"])
        day = self._pick(["1970-01-01", "0001-01-01", "1582-10-10", "9999-12-31", "2024-02-29", "1883-11-18"])
        if kind == "date":
            return f"DATE '{day}'"
        time = self._pick(["", " 00:00:00", " 23:59:59.999999", "T12:30:00.5"])
        return f"{kind} '{day}{time}'"

    def _choice(self, kind: str, depth: int) -> str:
        one, other = self.make(kind, depth), self.make(kind, depth)
        form = self._pick(["if", "coalesce", "coalesce with null", "case", "case of two"])
        if form == "coalesce":
            return f"coalesce({one}, {other})"
        if form == "coalesce with null":
            return f"coalesce({one}, NULL, {other})"
        condition = self.make("boolean", depth)
        if form == "if":
            return f"if({condition}, {one}, {other})"
        if form == "case":
            return f"case when {condition} then {one} else {other} end"
        return f"CASE WHEN {condition} THEN {one} WHEN {self.make('boolean', depth)} THEN {other} END"

    def _comparison(self, depth: int) -> str:
        kind = self._pick(_ALIKE)
        left, right = self.make(kind, depth), self.make(kind, depth)
        if kind == "date" and chance(self._draw, 30):
            right = self._pick(["'2024-02-29'", "timestamp", "timestamp_ntz"])
            right = right if "'" in right else self.make(right, depth)
        if kind == "timestamp" and chance(self._draw, 30):
            right = self._pick(["'2024-02-29'", "'1900-01-01 12:00:00'", "'2024-02-29T12:00:00.25'"])
        if chance(self._draw, 20):
            return f"({left} {self._pick(['', 'NOT '])}BETWEEN {right} AND {self.make(kind, 0)})"
        sign = self._pick(["=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">="])
        return f"({left} {sign} {self._pick([right, right, right, right, 'NULL'])})"

    def _logic(self, depth: int) -> str:
        left = self.make("boolean", depth)
        form = self._pick(["NOT", "IS TRUE", "AND", "or"])
        if form == "NOT":
            return f"(NOT {left})"
        return f"({left} IS TRUE)" if form == "IS TRUE" else f"({left} {form} {self.make('boolean', depth)})"

    def _null(self, depth: int) -> str:
        return f"({self.make(self._pick(_ALIKE), depth)} IS {self._pick(['', 'NOT '])}NULL)"

    def _in(self, depth: int) -> str:
        kind = self._pick(_ALIKE)
        options = [self.make(kind, 0) for _ in range(self._pick([1, 2, 3]))]
        if chance(self._draw, 20):
            options.append("NULL")
        return f"({self.make(kind, depth)} {self._pick(['', 'not '])}IN ({', '.join(options)}))"

    def _like(self, depth: int) -> str:
        pattern = "".join(self._pick(["%", "_", "a", "ß", "😀", "."]) for _ in range(self._pick([0, 1, 2, 3, 4])))
        return f"({self.make('string', depth)} LIKE '{pattern}')"

    def _arithmetic(self, depth: int) -> str:
        if chance(self._draw, 10):
            return f"(- {self.make('number', depth)})"
        return f"({self.make('number', depth)} {self._pick('+-*/%')} {self.make('number', depth)})"

    def _cast(self, depth: int) -> str:
        to = self._pick([*_SQL.values(), "decimal(10,2)", "DECIMAL(38, 18)", "dec(5)"])
        return f"CAST({self.make('number', depth)} AS {to})"

    def _part(self, depth: int) -> str:
        if chance(self._draw, 20):
            return f"length({self.make('string', depth)})"
        if chance(self._draw, 30):
            moment = self.make(self._pick(["timestamp", "timestamp_ntz"]), depth)
            return f"{self._pick(['hour', 'minute', 'second'])}({moment})"
        part = self._pick(["year", "month", "day", "dayofmonth", "quarter", "dayofweek", "dayofyear", "weekofyear"])
        return f"{part}({self.make(self._pick(['date', 'timestamp', 'timestamp_ntz']), depth)})"

    def _string(self, depth: int) -> str:
        form = self._pick(["left", "right", "case", "substr", "substring", "||", "CAST", "date_format"])
        if form == "CAST":
            return f"CAST({self._column(self._pick([*_INTEGERS, 'boolean', 'date']))} AS STRING)"
        if form == "date_format":
            return f"date_format({self._column(self._pick(['date', 'timestamp']))}, '{self._pick(_PATTERNS)}')"
        text = self.make("string", depth)
        if form == "||":
            return f"({text} || {self.make('string', depth)})"
        if form == "case":
            return f"{self._pick(['upper', 'lower', 'trim', 'ltrim', 'rtrim'])}({text})"
        start, count = self._pick([0, 1, 2, 5, -1, -2, -5]), self._pick([0, 1, 2, 3, 10, -1])
        if form == "substr":
            return f"substr({text}, {start})"
        return f"substring({text}, {start}, {count})" if form == "substring" else f"{form}({text}, {count})"

    def _date(self, depth: int) -> str:
        if chance(self._draw, 50):
            kind = self._pick(["date", "timestamp", "timestamp_ntz"])
            return f"trunc({self.make(kind, depth)}, '{self._pick(_UNITS)}')"
        return f"CAST({self.make(self._pick(['timestamp', 'timestamp_ntz']), depth)} AS DATE)"

    def _timestamp(self, depth: int) -> str:
        if chance(self._draw, 60):
            unit = self._pick([*_UNITS, "day", "HOUR", "minute", "SECOND"])
            return f"date_trunc('{unit}', {self.make('timestamp', depth)})"
        return f"CAST({self.make(self._pick(['date', 'timestamp_ntz']), depth)} AS TIMESTAMP)"
