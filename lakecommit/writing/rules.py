"""What a table asks of every row: columns that are filled in, and checks that have to be true."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lakecommit.errors import ConstraintViolated, UnsupportedTable
from lakecommit.expressions.binding import bind
from lakecommit.expressions.bound import Bound, Rows, Session
from lakecommit.expressions.constants import literal_value
from lakecommit.expressions.errors import EvaluationFailed, Unsupported
from lakecommit.expressions.parser import parse
from lakecommit.expressions.syntax import Expression, references, sql
from lakecommit.formats.plan import Computed, WritePlan
from lakecommit.schema import Field, Primitive, Struct
from lakecommit.writing.columns import arrow_field, conform

_SHOWN_CHARACTERS = 200


class RowRules:
    """The rules of one plan, for rows of `fields`.

    Raises `UnsupportedTable` if an expression is not evaluated exactly with the settings of this session: whoever
    has planned the write did not know them.
    """

    def __init__(self, plan: WritePlan, fields: tuple[Field, ...], session: Session) -> None:
        self._fields = fields
        self._session = session
        self._defaults = plan.defaults
        self._computed = [(each, *self._used(each)) for each in plan.computed]
        schema = Struct(fields)
        self._checks = [
            (each, *_bound(f"the constraint {each.name}", each.expression, schema, session)) for each in plan.checks
        ]

    def completed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch, as it came, with the columns that it does not have: defaults, and what is computed from others."""
        if not self._defaults and not self._computed:
            return batch
        zone = self._session.zone or zone_of(batch.schema)
        for default in self._defaults:
            batch = batch.append_column(default.column, self._filled(default, batch.num_rows, zone))
        made = [(each.column, self._made(each, used, bound, batch, zone)) for each, used, bound in self._computed]
        for column, values in made:
            batch = batch.append_column(column, values)
        return batch

    def check(self, chunk: pa.RecordBatch, zone: str | None) -> None:
        """Raises `ConstraintViolated`, with the values of the first row that violates a check.

        `chunk` has the columns of `fields`. `zone` is that of the rows, if the session does not say it.
        """
        if not self._checks:
            return
        rows = Rows(chunk.columns, chunk.num_rows, self._session.zone or zone)
        for check, expression, bound in self._checks:
            what = f"CHECK constraint {check.name} ({check.expression})"
            kept = pc.fill_null(_evaluated(what, bound, rows), False)
            if not pc.all(kept, min_count=0).as_py():
                values = "; ".join(self._shown(expression, rows, pc.index(kept, False).as_py()))
                raise ConstraintViolated(
                    f"{what} violated by row with values: {values}; nothing was added: filter or mend such rows"
                )

    def _used(self, computed: Computed) -> tuple[tuple[Field, ...], Bound]:
        """The columns that a computed one is made of, and how."""
        what = f"the generated column {computed.column}"
        expression, _ = _bound(what, computed.expression, Struct(self._fields), self._session)
        names = {reference.parts[0].lower() for reference in references(expression)}
        used = tuple(field for field in self._fields if field.name.lower() in names)
        return used, _bound(what, computed.expression, Struct(used), self._session)[1]

    def _filled(self, default: Computed, length: int, zone: str | None) -> pa.Array:
        field = next(field for field in self._fields if field.name == default.column)
        assert isinstance(field.type, Primitive), "others are refused when the write is planned"
        session = Session(self._session.ansi, zone, self._session.case_sensitive)
        try:
            return pa.repeat(literal_value(default.expression, field.type, session), length)
        except Unsupported as unsupported:
            raise _refused(f"the default of column {default.column}", default.expression, unsupported) from None

    def _made(
        self, computed: Computed, used: tuple[Field, ...], bound: Bound, batch: pa.RecordBatch, zone: str | None
    ) -> pa.Array:
        given = [field.name for field in used if batch.schema.get_field_index(field.name) >= 0]
        schema = pa.schema([arrow_field(field) for field in used])
        columns = conform(batch.select(given), used, schema).columns
        what = f"generated column {computed.column} ({computed.expression})"
        return _evaluated(what, bound, Rows(columns, batch.num_rows, zone))

    def _shown(self, expression: Expression, rows: Rows, row: int) -> Iterator[str]:
        for reference in references(expression):
            values = bind(reference, Struct(self._fields), self._session).evaluate(rows)
            text = str(values[row])
            shown = "null" if not values[row].is_valid else text
            cut = shown if len(shown) <= _SHOWN_CHARACTERS else shown[:_SHOWN_CHARACTERS] + "…"
            yield f"{sql(reference)} : {cut}"


def zone_of(schema: pa.Schema) -> str | None:
    """The session's time zone: Spark says it with every timestamp that it hands over. None without timestamps."""
    kinds = [field.type for field in schema]
    while kinds:
        kind = kinds.pop()
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            return str(kind.tz)
        kinds += [kind.field(number).type for number in range(kind.num_fields)]
    return None


def _bound(what: str, text: str, schema: Struct, session: Session) -> tuple[Expression, Bound]:
    try:
        expression = parse(text)
        return expression, bind(expression, schema, session)
    except Unsupported as unsupported:
        raise _refused(what, text, unsupported) from None


def _evaluated(what: str, bound: Bound, rows: Rows) -> pa.Array:
    try:
        return bound.evaluate(rows)
    except EvaluationFailed as failed:
        raise ConstraintViolated(
            f"{what} has no value for a row: {failed}; nothing was added: mend such rows"
        ) from None
    except Unsupported as unsupported:
        raise UnsupportedTable(
            f"{what} is not evaluated here: {unsupported}; set spark.sql.session.timeZone, or use delta-spark"
        ) from None


def _refused(what: str, text: str, unsupported: Unsupported) -> UnsupportedTable:
    return UnsupportedTable(
        f"{what} ({text}) is not evaluated here exactly as Spark would with the settings of this session: it has "
        f"{unsupported}; use delta-spark"
    )
