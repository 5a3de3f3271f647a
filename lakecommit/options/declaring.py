"""How an option is declared: as a field of a frozen dataclass, whose type is what `read` gives.

    commit_wait_ms: int = option("commitWait", Applies.STREAM, duration_ms, default="30s", values="…", help="…")

The field is all there is to say: parsing, checks, `docs/options.md` and `lakecommit explain` take the rest from it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar, overload

T = TypeVar("T")
_DECLARED = "declared"


class Applies(enum.Enum):
    """What an option is for: writes of one kind or of both, or the process with all of its writes."""

    BOTH = "batch, stream"
    BATCH = "batch"
    STREAM = "stream"
    PROCESS = "process"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """One option. `attribute` is the field that holds its value; a unit ends its name.

    `read` turns the text into a value and raises `ValueError` where it is not one of `values`. `missing` is what is
    said where it is not given and has to be; else it has a default, which users see as `shown_default`.
    """

    attribute: str = ""
    name: str
    applies: Applies
    read: Callable[[str], Any]
    shown_default: str
    values: str
    help: str
    missing: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefixed:
    """Options that begin with `prefix` and are somebody else's; `hint` is what the command line says of them."""

    prefix: str
    key: str
    shown_default: str
    values: str
    help: str
    hint: str


@overload
def option(
    name: str, applies: Applies, read: Callable[[str], T], *, default: str, values: str, help: str
) -> T: ...  # read as a user's text is


@overload
def option(
    name: str, applies: Applies, read: Callable[[str], T], *, missing: str, values: str, help: str
) -> T: ...  # has to be given


@overload
def option(
    name: str, applies: Applies, read: Callable[[str], T], *, unset: str = "", values: str, help: str
) -> T | None: ...  # None where it is not given, which users see as `unset`


def option(
    name: str,
    applies: Applies,
    read: Callable[[str], Any],
    *,
    default: str | None = None,
    missing: str | None = None,
    unset: str = "",
    values: str,
    help: str,
) -> Any:
    """A field of a dataclass of options. Typed as its value, as `dataclasses.field` is."""
    declared = Declaration(
        name=name,
        applies=applies,
        read=read,
        shown_default=unset if default is None else default,
        values=values,
        help=help,
        missing=missing,
    )
    metadata: Mapping[str, Any] = {_DECLARED: declared}
    if missing is not None:
        return field(metadata=metadata)
    return field(default=None if default is None else read(default), metadata=metadata)


def declarations_of(kind: type[Any]) -> tuple[Declaration, ...]:
    """The options that a dataclass declares, in their order; those of its bases first."""
    return tuple(
        replace(each.metadata[_DECLARED], attribute=each.name) for each in fields(kind) if _DECLARED in each.metadata
    )
