"""Ties an expression to the columns of a schema and to Spark's types, with the casts that Spark adds by itself."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pyarrow.compute as pc

from lakecommit.expressions import arithmetic, choosing, comparing, literals
from lakecommit.expressions.bound import Bound, Rows, Session, of_literal
from lakecommit.expressions.casts import cast
from lakecommit.expressions.errors import Unsupported
from lakecommit.expressions.functions import FUNCTIONS
from lakecommit.expressions.syntax import Call, Cast, Expression, Literal, Reference, children, references
from lakecommit.expressions.types import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGERS,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    as_decimal,
    decimal,
    decimal_parts,
    decimal_result,
    integer_limits,
    is_evaluated,
    is_numeric,
    wider,
)
from lakecommit.schema import DataType, Primitive, Struct, describe

# From so many on, Spark looks an element of a list up by its bits, by which the two zeros differ.
_LONG_LIST = 10
_NEGATED_DIGITS = 34


def bind(expression: Expression, schema: Struct, session: Session) -> Bound:
    """The expression over rows of `schema`. Raises `Unsupported` for what is not evaluated exactly as Spark would."""
    return _Binder(schema, session).bind(expression)


class _Binder:
    def __init__(self, schema: Struct, session: Session) -> None:
        self._schema = schema
        self._session = session

    def bind(self, expression: Expression) -> Bound:
        match expression:
            case Literal():
                return of_literal(expression)
            case Reference():
                return self._reference(expression)
            case Cast(Literal(str(text)), Primitive("date" | "timestamp" | "timestamp_ntz") as to, position):
                return self._moment(text, to, position)
            case Cast(child, to, position):
                return cast(self._value(child), to, ansi=self._session.ansi, position=position)
            case Call("isnull", (child,)):
                return choosing.null_test(self.bind(child))
            case Call("and" | "or" as name, (left, right)):
                sides = self._condition(left), self._condition(right)
                if any(side.constant for side in sides):
                    # Spark leaves the other side out then, if it may, and what may fail with it.
                    raise Unsupported(f"{name.upper()} with a side that is the same for all rows", expression.position)
                return choosing.conjunction(*sides) if name == "and" else choosing.disjunction(*sides)
            case Call("not", (child,)):
                return choosing.negation(self._condition(child))
            case Call("negative", (child,), position):
                return self._negative(child, position)
            case Call(name, (_, _)) if name in comparing.SIGNS:
                return self._comparison(expression)
            case Call(name, (_, _)) if name in arithmetic.SIGNS:
                return self._arithmetic(expression)
            case Call("in", (value, *options), position):
                return self._membership(value, options, position)
            case Call("case" | "if" as name, arguments, position) if name == "case" or len(arguments) == 3:
                return self._choice(arguments, position)
            case Call("coalesce", arguments, position) if arguments:
                return choosing.first_valid(tuple(self._alike(arguments, position)))
            case Call(name, arguments, position) if name in FUNCTIONS:
                bound = tuple(self._value(argument) for argument in arguments)
                return FUNCTIONS[name](name, bound, self._session, position)
            case Call(name, arguments, position):
                raise Unsupported(f"the function {name} of {len(arguments)} arguments", position)

    def _value(self, expression: Expression) -> Bound:
        found = self.bind(expression)
        if not is_evaluated(found.type):
            raise Unsupported(f"a value of the type {describe(found.type)}", expression.position)
        return found

    def _condition(self, expression: Expression) -> Bound:
        found = self._value(expression)
        if found.type not in (BOOLEAN, VOID):
            raise Unsupported(f"{describe(found.type)} as a condition", expression.position)
        return self._cast(found, BOOLEAN, expression.position)

    def _cast(self, child: Bound, to: Primitive, position: int | None) -> Bound:
        return cast(child, to, ansi=self._session.ansi, position=position)

    def _reference(self, reference: Reference) -> Bound:
        place: DataType = self._schema
        path: list[int] = []
        for part in reference.parts:
            if not isinstance(place, Struct):
                raise Unsupported(f"{part} of {describe(place)}", reference.position)
            names = [field.name for field in place.fields]
            found = [number for number, name in enumerate(names) if self._same(name, part)]
            if len(found) != 1:
                which = "is not among the columns" if not found else "is among the columns more than once"
                raise Unsupported(f"{'.'.join(reference.parts)}, which {which}", reference.position)
            path.append(found[0])
            place = place.fields[found[0]].type
        column, *inner = path

        def evaluate(rows: Rows) -> object:
            values = rows.columns[column]
            return pc.struct_field(values, inner) if inner else values

        return Bound(place, evaluate)

    def _same(self, name: str, part: str) -> bool:
        return name == part or (not self._session.case_sensitive and name.lower() == part.lower())

    def _moment(self, text: str, to: Primitive, position: int | None) -> Bound:
        found = literals.day(text) if to == DATE else literals.moment(text, to)
        if found is None:
            raise Unsupported(f"the text {text!r} as {describe(to)}", position)
        return self.bind(found)

    def _negative(self, child: Expression, position: int | None) -> Bound:
        value = self._value(child)
        parts = decimal_parts(value.type)
        # Of longer ones Spark rounds the last digits.
        if not is_numeric(value.type) or (parts is not None and parts[0] > _NEGATED_DIGITS):
            raise Unsupported(f"- of {describe(value.type)}", position)
        return arithmetic.negative(value, ansi=self._session.ansi)

    def _comparison(self, call: Call) -> Bound:
        left, right = self._pair(call)
        together = wider(left.type, right.type, ansi=self._session.ansi)
        if together is None or together == VOID:
            raise self._unlike(call, left, right)
        self._refuse_null_beside_failure(left, right, call.position)
        if any(_is_beyond(one.literal) and other.type in INTEGERS for one, other in ((left, right), (right, left))):
            # Spark makes such a comparison true or false, also where the whole number is null.
            raise Unsupported("a comparison of a whole number with one that is larger than any", call.position)
        return comparing.comparison(
            call.name, self._cast(left, together, call.position), self._cast(right, together, call.position)
        )

    def _pair(self, call: Call) -> tuple[Bound, Bound]:
        """Both sides, with what Spark makes of literals: dates of texts, short decimals of whole numbers."""
        left, right = (self._value(argument) for argument in call.arguments)
        return self._beside(left, right, call.position), self._beside(right, left, call.position)

    def _beside(self, side: Bound, other: Bound, position: int | None) -> Bound:
        literal = side.literal
        if literal is None:
            return side
        if literal.type == STRING and other.type in (DATE, TIMESTAMP, TIMESTAMP_NTZ) and other.literal is None:
            return self._moment(str(literal.value), other.value_type, literal.position or position)
        # Of a tinyint Spark takes all digits that the type may have.
        if literal.type in INTEGERS and literal.type != BYTE and decimal_parts(other.type) is not None:
            value = Decimal(int(literal.value or 0))
            return of_literal(Literal(value, decimal(len(value.as_tuple().digits), 0), literal.position))
        return side

    def _arithmetic(self, call: Call) -> Bound:
        left, right = self._pair(call)
        if not all(is_numeric(side.type) or side.type == VOID for side in (left, right)):
            raise self._unlike(call, left, right)
        sign, position, ansi = call.name, call.position, self._session.ansi
        if VOID in (left.type, right.type):
            raise self._unlike(call, left, right)
        self._refuse_null_beside_failure(left, right, position)
        floating = {FLOAT, DOUBLE}.intersection((left.type, right.type))
        if not floating and (decimal_parts(left.type) or decimal_parts(right.type)):
            left_size, right_size = as_decimal(left.type), as_decimal(right.type)
            result = None if sign in "/%" else decimal_result(sign, left_size, right_size)
            if result is None:
                # Of a division, and of a result with too many digits, Spark rounds.
                raise self._unlike(call, left, right)
            left = self._cast(left, decimal(*left_size), position)
            right = self._cast(right, decimal(*right_size), position)
            return arithmetic.arithmetic(sign, left, right, result, ansi=ansi)
        together = DOUBLE if sign == "/" else wider(left.type, right.type, ansi=ansi)
        assert together is not None, "numbers other than decimals have one"
        if ansi and together in INTEGERS and _is_reordered(call):
            raise Unsupported(f"a constant inside of several {sign}, of which Spark changes the order", position)
        left, right = self._cast(left, together, position), self._cast(right, together, position)
        return arithmetic.arithmetic(sign, left, right, together, ansi=ansi)

    def _membership(self, value: Expression, options: Sequence[Expression], position: int | None) -> Bound:
        sides = [self._value(side) for side in (value, *options)]
        if sides[0].type == DATE:
            sides = [sides[0], *(self._beside(side, sides[0], position) for side in sides[1:])]
        kind, *bound = self._widened(sides, position)
        if any(option.fails for option in bound):
            raise Unsupported("an element of IN that may fail", position)
        if kind.type in (FLOAT, DOUBLE) and len(bound) > _LONG_LIST:
            raise Unsupported(f"IN with more than {_LONG_LIST} elements of {describe(kind.type)}", position)
        return comparing.is_one_of(kind, tuple(bound))

    def _choice(self, arguments: Sequence[Expression], position: int | None) -> Bound:
        conditions = [self._condition(condition) for condition in arguments[:-1:2]]
        values = self._alike([*arguments[1::2], arguments[-1]], position)
        return choosing.choice(list(zip(conditions, values[:-1], strict=True)), values[-1])

    def _alike(self, expressions: Sequence[Expression], position: int | None) -> list[Bound]:
        return self._widened([self._value(expression) for expression in expressions], position)

    def _widened(self, sides: Sequence[Bound], position: int | None) -> list[Bound]:
        """All of them as the one type that holds them all."""
        together = sides[0].type
        for side in sides[1:]:
            found = wider(together, side.type, ansi=self._session.ansi)
            if found is None:
                raise Unsupported(f"{describe(together)} beside {describe(side.type)}", position)
            together = found
        if together == VOID:
            raise Unsupported("nothing but NULL", position)
        assert isinstance(together, Primitive)
        return [self._cast(side, together, position) for side in sides]

    def _refuse_null_beside_failure(self, left: Bound, right: Bound, position: int | None) -> None:
        """Whether Spark evaluates the other side, and fails, is its optimizer's decision."""
        if (left.fails or right.fails) and (left.is_null or right.is_null):
            raise Unsupported("NULL beside what may fail", position)

    def _unlike(self, call: Call, left: Bound, right: Bound) -> Unsupported:
        return Unsupported(f"{call.name} of {describe(left.type)} and {describe(right.type)}", call.position)


def _is_reordered(call: Call) -> bool:
    """Whether Spark may move constants of a chain of + or * to its end, so that it overflows elsewhere."""
    if call.name not in "+*":
        return False
    operands = _chain(call, call.name)
    constants = [not references(operand) for operand in operands]
    left_to_right = all(not _is_call(part.arguments[1], call.name) for part in _calls(call, call.name))
    # One at the end stays there.
    return len(operands) > 2 and any(constants) and not (left_to_right and not any(constants[:-1]))


def _calls(expression: Expression, name: str) -> list[Call]:
    """The calls of one sign that form a chain."""
    if not (isinstance(expression, Call) and expression.name == name):
        return []
    return [expression, *(call for argument in expression.arguments for call in _calls(argument, name))]


def _chain(expression: Expression, name: str) -> list[Expression]:
    if not _is_call(expression, name):
        return [expression]
    return [operand for argument in children(expression) for operand in _chain(argument, name)]


def _is_call(expression: Expression, name: str) -> bool:
    return isinstance(expression, Call) and expression.name == name


def _is_beyond(literal: Literal | None) -> bool:
    """Whether it is a decimal outside of the whole numbers that there are."""
    if literal is None or decimal_parts(literal.type) is None:
        return False
    low, high = integer_limits(LONG)
    return not low <= Decimal(literal.value or 0) <= high
