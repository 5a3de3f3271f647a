"""Reads an expression: the part of Spark's grammar that is evaluated here, with Spark's precedence."""

from __future__ import annotations

from lakecommit.expressions import literals
from lakecommit.expressions.errors import Unsupported
from lakecommit.expressions.syntax import Call, Cast, Expression, Literal, Reference
from lakecommit.expressions.tokens import RESERVED, Token, tokens
from lakecommit.expressions.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    MAX_PRECISION,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    decimal,
)
from lakecommit.schema import Primitive

_TYPES = {
    "TINYINT": BYTE,
    "BYTE": BYTE,
    "SMALLINT": SHORT,
    "SHORT": SHORT,
    "INT": INTEGER,
    "INTEGER": INTEGER,
    "BIGINT": LONG,
    "LONG": LONG,
    "FLOAT": FLOAT,
    "REAL": FLOAT,
    "DOUBLE": DOUBLE,
    "STRING": STRING,
    "BOOLEAN": BOOLEAN,
    "BINARY": BINARY,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_LTZ": TIMESTAMP,
    "TIMESTAMP_NTZ": TIMESTAMP_NTZ,
}
_DECIMALS = frozenset({"DECIMAL", "DEC", "NUMERIC"})
# Functions that are casts by another name.
_CASTS = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double", "date", "string"})

# How tightly the signs between two values bind. Predicates, NOT, AND and OR bind less, in this order.
_BINDING = {
    **dict.fromkeys(("=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">="), 1),
    **dict.fromkeys(("+", "-", "||"), 2),
    **dict.fromkeys(("*", "/", "%"), 3),
}


def parse(text: str) -> Expression:
    """Raises `Unsupported`, with the place, for all that is not evaluated here, whether Spark knows it or not."""
    reader = _Reader(tokens(text))
    found = reader.boolean()
    reader.expect_end()
    return found


class _Reader:
    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._next
        if token.kind != "end":
            self._at += 1
        return token

    def _takes_word(self, *words: str) -> bool:
        found = self._next.is_word(*words)
        self._at += found
        return found

    def _takes_sign(self, *signs: str) -> bool:
        found = self._next.is_sign(*signs)
        self._at += found
        return found

    def _refused(self, token: Token) -> Unsupported:
        return Unsupported(repr(token.text) if token.kind != "end" else "an unfinished expression", token.position)

    def _expect_word(self, word: str) -> None:
        if not self._takes_word(word):
            raise self._refused(self._next)

    def _expect_sign(self, sign: str) -> None:
        if not self._takes_sign(sign):
            raise self._refused(self._next)

    def expect_end(self) -> None:
        if self._next.kind != "end":
            raise self._refused(self._next)

    def boolean(self) -> Expression:
        found = self._conjunction()
        while self._next.is_word("OR"):
            position = self._take().position
            found = Call("or", (found, self._conjunction()), position)
        return found

    def _conjunction(self) -> Expression:
        found = self._negation()
        while self._next.is_word("AND"):
            position = self._take().position
            found = Call("and", (found, self._negation()), position)
        return found

    def _negation(self) -> Expression:
        if self._next.is_word("NOT") or self._next.is_sign("!"):
            position = self._take().position
            return Call("not", (self._negation(),), position)
        return self._predicate(self._value(1))

    def _predicate(self, value: Expression) -> Expression:
        token = self._next
        if self._takes_word("IS"):
            negated = self._takes_word("NOT")
            return _negated(self._test(value, token.position), negated, token.position)
        negated = self._takes_word("NOT")
        if self._takes_word("BETWEEN"):
            low = self._value(1)
            self._expect_word("AND")
            both = (Call(">=", (value, low), token.position), Call("<=", (value, self._value(1)), token.position))
            return _negated(Call("and", both, token.position), negated, token.position)
        if self._takes_word("IN"):
            self._expect_sign("(")
            return _negated(Call("in", (value, *self._list()), token.position), negated, token.position)
        if self._takes_word("LIKE"):
            return _negated(Call("like", (value, self._value(1)), token.position), negated, token.position)
        if negated:
            raise self._refused(self._next)
        return value

    def _test(self, value: Expression, position: int) -> Expression:
        if self._takes_word("NULL"):
            return Call("isnull", (value,), position)
        for word in ("TRUE", "FALSE"):
            if self._takes_word(word):
                return Call("<=>", (value, literals.boolean(word == "TRUE")), position)
        if self._takes_word("DISTINCT"):
            self._expect_word("FROM")
            return Call("not", (Call("<=>", (value, self._value(1)), position),), position)
        raise self._refused(self._next)

    def _value(self, least: int) -> Expression:
        found = self._unary()
        while self._next.kind == "sign" and (binding := _BINDING.get(self._next.text, 0)) >= least:
            token = self._take()
            right = self._value(binding + 1)
            found = _binary(token, found, right)
        return found

    def _unary(self) -> Expression:
        token = self._next
        if self._takes_sign("-"):
            if self._next.kind == "number":
                return literals.number("-" + self._take().text, token.position)
            return Call("negative", (self._unary(),), token.position)
        if self._takes_sign("+"):
            raise Unsupported("a unary +", token.position)
        return self._primary()

    def _primary(self) -> Expression:
        token = self._take()
        following = self._next
        match token.kind:
            case "number":
                return literals.number(token.text, token.position)
            case "string":
                if following.kind == "string":
                    raise Unsupported("strings side by side", following.position)
                return Literal(token.text, STRING, token.position)
            case "quoted":
                return self._reference(token)
            case "sign" if token.text == "(":
                inner = self.boolean()
                self._expect_sign(")")
                return inner
            case "word" if following.kind == "string":
                return self._typed(token)
            case "word":
                return self._word(token)
        raise self._refused(token)

    def _word(self, token: Token) -> Expression:
        word = token.text.upper()
        if word == "NULL":
            return literals.null(token.position)
        if word in {"TRUE", "FALSE"}:
            return literals.boolean(word == "TRUE", token.position)
        if word == "CASE":
            return self._case(token)
        if self._next.is_sign("("):
            return self._cast(token) if word == "CAST" else self._call(token)
        if word in RESERVED:
            raise self._refused(token)
        return self._reference(token)

    def _typed(self, token: Token) -> Expression:
        text = self._take().text
        to = _TYPES.get(token.text.upper())
        found: Expression | None = None
        if to in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
            found = literals.day(text) if to == DATE else literals.moment(text, to)
        if found is None:
            raise Unsupported(f"the literal {token.text} {text!r}", token.position)
        return found

    def _cast(self, token: Token) -> Expression:
        self._expect_sign("(")
        child = self.boolean()
        self._expect_word("AS")
        to = self._type()
        self._expect_sign(")")
        return Cast(child, to, token.position)

    def _type(self) -> Primitive:
        token = self._take()
        name = token.text.upper()
        if token.kind == "word" and name in _DECIMALS:
            parts = [10, 0]
            if self._takes_sign("("):
                parts[0] = self._whole()
                parts[1] = self._whole() if self._takes_sign(",") else 0
                self._expect_sign(")")
            if not 1 <= parts[0] <= MAX_PRECISION or parts[1] > parts[0]:
                raise Unsupported(f"the type decimal({parts[0]},{parts[1]})", token.position)
            return decimal(*parts)
        if token.kind != "word" or name not in _TYPES:
            raise Unsupported(f"the type {token.text}", token.position)
        return _TYPES[name]

    def _whole(self) -> int:
        token = self._take()
        if token.kind != "number" or not token.text.isdigit():
            raise self._refused(token)
        return int(token.text)

    def _call(self, token: Token) -> Expression:
        self._expect_sign("(")
        arguments = () if self._takes_sign(")") else self._list()
        name = token.text.lower()
        if name in _CASTS and len(arguments) == 1:
            return Cast(arguments[0], _TYPES[name.upper()], token.position)
        return Call(name, arguments, token.position)

    def _list(self) -> tuple[Expression, ...]:
        found = [self.boolean()]
        while self._takes_sign(","):
            found.append(self.boolean())
        self._expect_sign(")")
        return tuple(found)

    def _case(self, token: Token) -> Expression:
        compared = None if self._next.is_word("WHEN") else self.boolean()
        parts: list[Expression] = []
        while self._takes_word("WHEN"):
            condition = self.boolean()
            parts.append(condition if compared is None else Call("=", (compared, condition), token.position))
            self._expect_word("THEN")
            parts.append(self.boolean())
        if not parts:
            raise self._refused(self._next)
        parts.append(self.boolean() if self._takes_word("ELSE") else literals.null())
        self._expect_word("END")
        return Call("case", tuple(parts), token.position)

    def _reference(self, token: Token) -> Reference:
        parts = [token.text]
        while self._takes_sign("."):
            part = self._take()
            if part.kind not in {"word", "quoted"}:
                raise self._refused(part)
            parts.append(part.text)
        if self._next.is_sign("("):
            raise Unsupported(f"the function {'.'.join(parts)}", token.position)
        return Reference(tuple(parts), token.position)


def _negated(expression: Expression, negated: bool, position: int) -> Expression:
    return Call("not", (expression,), position) if negated else expression


def _binary(token: Token, left: Expression, right: Expression) -> Expression:
    match token.text:
        case "==":
            return Call("=", (left, right), token.position)
        case "<>" | "!=":
            return Call("not", (Call("=", (left, right), token.position),), token.position)
        case "||":
            return Call("concat", (left, right), token.position)
        case sign:
            return Call(sign, (left, right), token.position)
