"""Random expressions over random rows, in which every part has the type that is asked for."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.interop.random_rows import PATHS

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


class RandomExpressions:
    """`make("boolean")` is one more. Parts are nested at most as deep as `depth` says."""

    def __init__(self, rng: random.Random, depth: int = 3) -> None:
        self._rng = rng
        self._depth = depth

    def make(self, kind: str, depth: int | None = None) -> str:
        depth = self._depth if depth is None else depth
        rng = self._rng
        if kind == "number":
            kind = rng.choice(_NUMBERS)
        if depth <= 0 or rng.random() < 0.15:
            return self._column(kind) if rng.random() < 0.7 else self._literal(kind)
        if rng.random() < 0.12:
            return self._choice(kind, depth - 1)
        made: dict[str, list[Callable[[int], str]]] = {
            "boolean": [self._comparison, self._comparison, self._logic, self._logic, self._null, self._in, self._like],
            "string": [self._string],
            "date": [self._date],
            "timestamp": [self._timestamp],
            "timestamp_ntz": [lambda deep: f"CAST({self.make('date', deep)} AS TIMESTAMP_NTZ)"],
            "integer": [self._arithmetic, self._part, self._cast],
        }
        return rng.choice(made.get(kind, [self._arithmetic, self._arithmetic, self._cast]))(depth - 1)

    def _column(self, kind: str) -> str:
        name = self._rng.choice(_COLUMNS[kind])
        return (
            "`" + name + "`" if "." not in name and self._rng.random() < 0.1 else self._rng.choice([name, name.upper()])
        )

    def _literal(self, kind: str) -> str:
        rng = self._rng
        small = rng.choice([0, 1, 2, 3, -1, 10, 100, 127, -128])
        match kind:
            case "byte" | "short" | "long":
                return f"{small}{ {'byte': 'Y', 'short': 'S', 'long': 'L'}[kind] }"
            case "integer":
                return str(rng.choice([small, 2147483647, -2147483648, 2147483648, 99999999999999999999]))
            case "float" | "double":
                return rng.choice(["1.5", "0.0", "-0.0", "1e10", "3.402823e38", "1e-45", "0.1"]) + kind[0].upper()
            case "decimal":
                return rng.choice(["1.5", "0.05", "-2.25", "1.", ".5", "123456.789", "0.0", "7BD", "00.50"])
            case "string":
                return "'" + "".join(rng.choice(_LETTERS) for _ in range(rng.randint(0, 4))) + "'"
            case "boolean":
                return rng.choice(["true", "FALSE"])
        day = rng.choice(["1970-01-01", "0001-01-01", "1582-10-10", "9999-12-31", "2024-02-29", "1883-11-18"])
        if kind == "date":
            return f"DATE '{day}'"
        time = rng.choice(["", " 00:00:00", " 23:59:59.999999", "T12:30:00.5"])
        return f"{kind} '{day}{time}'"

    def _choice(self, kind: str, depth: int) -> str:
        condition, one, other = self.make("boolean", depth), self.make(kind, depth), self.make(kind, depth)
        return self._rng.choice(
            [
                f"if({condition}, {one}, {other})",
                f"CASE WHEN {condition} THEN {one} WHEN {self.make('boolean', depth)} THEN {other} END",
                f"case when {condition} then {one} else {other} end",
                f"coalesce({one}, {other})",
                f"coalesce({one}, NULL, {other})",
            ]
        )

    def _comparison(self, depth: int) -> str:
        rng = self._rng
        kind = rng.choice(_ALIKE)
        left, right = self.make(kind, depth), self.make(kind, depth)
        if kind == "date" and rng.random() < 0.3:
            right = rng.choice(["'2024-02-29'", self.make("timestamp", depth), self.make("timestamp_ntz", depth)])
        if kind == "timestamp" and rng.random() < 0.3:
            right = rng.choice(["'2024-02-29'", "'1900-01-01 12:00:00'", "'2024-02-29T12:00:00.25'"])
        if rng.random() < 0.2:
            return f"({left} {rng.choice(['', 'NOT '])}BETWEEN {right} AND {self.make(kind, 0)})"
        sign = rng.choice(["=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">="])
        return f"({left} {sign} {rng.choice([right, right, right, right, 'NULL'])})"

    def _logic(self, depth: int) -> str:
        left, right = self.make("boolean", depth), self.make("boolean", depth)
        return self._rng.choice([f"({left} AND {right})", f"({left} or {right})", f"(NOT {left})", f"({left} IS TRUE)"])

    def _null(self, depth: int) -> str:
        return f"({self.make(self._rng.choice(_ALIKE), depth)} IS {self._rng.choice(['', 'NOT '])}NULL)"

    def _in(self, depth: int) -> str:
        kind = self._rng.choice(_ALIKE)
        options = [self.make(kind, 0) for _ in range(self._rng.randint(1, 3))]
        if self._rng.random() < 0.2:
            options.append("NULL")
        return f"({self.make(kind, depth)} {self._rng.choice(['', 'not '])}IN ({', '.join(options)}))"

    def _like(self, depth: int) -> str:
        pattern = "".join(self._rng.choice(["%", "_", "a", "ß", "😀", "."]) for _ in range(self._rng.randint(0, 4)))
        return f"({self.make('string', depth)} LIKE '{pattern}')"

    def _arithmetic(self, depth: int) -> str:
        rng = self._rng
        if rng.random() < 0.1:
            return f"(- {self.make('number', depth)})"
        return f"({self.make('number', depth)} {rng.choice('+-*/%')} {self.make('number', depth)})"

    def _cast(self, depth: int) -> str:
        to = self._rng.choice([*_SQL.values(), "decimal(10,2)", "DECIMAL(38, 18)", "dec(5)"])
        return f"CAST({self.make('number', depth)} AS {to})"

    def _part(self, depth: int) -> str:
        rng = self._rng
        if rng.random() < 0.2:
            return f"length({self.make('string', depth)})"
        if rng.random() < 0.3:
            moment = self.make(rng.choice(["timestamp", "timestamp_ntz"]), depth)
            return f"{rng.choice(['hour', 'minute', 'second'])}({moment})"
        part = rng.choice(["year", "month", "day", "dayofmonth", "quarter", "dayofweek", "dayofyear", "weekofyear"])
        return f"{part}({self.make(rng.choice(['date', 'timestamp', 'timestamp_ntz']), depth)})"

    def _string(self, depth: int) -> str:
        rng = self._rng
        text = self.make("string", depth)
        start, count = rng.choice([0, 1, 2, 5, -1, -2, -5]), rng.choice([-1, 0, 1, 2, 3, 10])
        return rng.choice(
            [
                f"substring({text}, {start}, {count})",
                f"substr({text}, {start})",
                f"left({text}, {count})",
                f"right({text}, {count})",
                f"{rng.choice(['upper', 'lower', 'trim', 'ltrim', 'rtrim'])}({text})",
                f"({text} || {self.make('string', depth)})",
                f"CAST({self._column(rng.choice([*_INTEGERS, 'boolean', 'date']))} AS STRING)",
                f"date_format({self._column(rng.choice(['date', 'timestamp']))}, '{rng.choice(_PATTERNS)}')",
            ]
        )

    def _date(self, depth: int) -> str:
        rng = self._rng
        if rng.random() < 0.5:
            kind = rng.choice(["date", "timestamp", "timestamp_ntz"])
            return f"trunc({self.make(kind, depth)}, '{rng.choice(_UNITS)}')"
        return f"CAST({self.make(rng.choice(['timestamp', 'timestamp_ntz']), depth)} AS DATE)"

    def _timestamp(self, depth: int) -> str:
        rng = self._rng
        if rng.random() < 0.6:
            unit = rng.choice([*_UNITS, "day", "HOUR", "minute", "SECOND"])
            return f"date_trunc('{unit}', {self.make('timestamp', depth)})"
        return f"CAST({self.make(rng.choice(['date', 'timestamp_ntz']), depth)} AS TIMESTAMP)"
