"""Functions of strings, which count in code points."""

from __future__ import annotations

import unicodedata

import pyarrow as pa
import pyarrow.compute as pc

from lakecommit.expressions.bound import Bound, combine
from lakecommit.expressions.errors import EvaluationFailed, Unsupported
from lakecommit.expressions.types import BOOLEAN, INTEGER, STRING

# Its lower case depends on the letters around it.
_SIGMA = "Σ"
TRIMS = {"trim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}


def concat(parts: tuple[Bound, ...]) -> Bound:
    """Null if any part is. Precondition: no part may fail."""
    return combine(
        STRING,
        lambda rows: pc.binary_join_element_wise(
            *(part.evaluate(rows) for part in parts), "", null_handling="emit_null"
        ),
        *parts,
    )


def length(child: Bound) -> Bound:
    return combine(INTEGER, lambda rows: pc.utf8_length(child.evaluate(rows)), child)


def substring(child: Bound, start: int, count: int | None) -> Bound:
    """From the `start`-th character, the first being 1 (and 0), or from the end if it is negative."""
    begin = start - 1 if start > 0 else start
    end = None if count is None else begin + count
    if count is not None and count <= 0:
        return combine(STRING, lambda rows: _emptied(child.evaluate(rows)), child)
    if begin < 0 and end is not None and end >= 0:
        # Counted from the end of the string, it is there or behind it.
        end = None
    return combine(STRING, lambda rows: pc.utf8_slice_codeunits(child.evaluate(rows), begin, end), child)


def right(child: Bound, count: int) -> Bound:
    return substring(child, -count, None) if count > 0 else substring(child, 1, 0)


def trim(name: str, child: Bound) -> Bound:
    """Spaces alone, no other white space."""
    return combine(STRING, lambda rows: TRIMS[name](child.evaluate(rows), characters=" "), child)


def like(child: Bound, pattern: str, position: int | None) -> Bound:
    if "\\" in pattern:
        raise Unsupported("LIKE with an escape", position)
    return combine(BOOLEAN, lambda rows: pc.match_like(child.evaluate(rows), pattern), child)


def in_case(name: str, child: Bound) -> Bound:
    """Upper or lower case, of letters outside of ASCII as Unicode has it in full."""
    kernel = pc.ascii_upper if name == "upper" else pc.ascii_lower

    def change(values: pa.Array) -> pa.Array:
        if pc.all(pc.string_is_ascii(values), min_count=0).as_py():
            return kernel(values)
        return pa.array([None if value is None else _in_case(name, value) for value in values.to_pylist()], pa.string())

    return combine(STRING, lambda rows: change(child.evaluate(rows)), child)


def _in_case(name: str, value: str) -> str:
    if any(_may_change(name, character) for character in value) or (name == "lower" and _SIGMA in value):
        raise EvaluationFailed(f"{name}() of a character for which versions of Unicode may differ: {value!r}")
    return value.upper() if name == "upper" else value.lower()


def _may_change(name: str, character: str) -> bool:
    """Whether another version of Unicode may have another case of it: cases that there are stay, others may come."""
    if character.isascii():
        return False
    category, code = unicodedata.category(character), ord(character)
    if category == "Cn":
        # Some codes will never be a letter.
        return not (code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF)
    alone = character.upper() == character.lower() == character
    return category in {"Ll", "Lu"} and alone


def _emptied(values: pa.Array) -> pa.Array:
    return pc.if_else(values.is_valid(), pa.scalar("", pa.string()), pa.scalar(None, pa.string()))
