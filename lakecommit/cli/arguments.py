"""What the verbs have in common: `--store`, `--json`, and running a coroutine."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import click

from lakecommit.options.declarations import STORE

UNITS_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000}

T = TypeVar("T")
Command = Callable[..., Any]


def _store_options(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    options = {}
    for number, each in enumerate(given, start=1):
        key, equals, value = each.partition("=")
        if not (key and equals):
            # Not quoted: what is not understood may be a secret.
            raise click.BadParameter(f"number {number} is not of the form key=value")
        options[key.lower().removeprefix(STORE.prefix)] = value
    return options


def age_ms(given: str) -> int:
    """Raises `click.BadParameter` if it is no age."""
    match = re.fullmatch(r"(\d{1,6})([mhd])", given.strip())
    if match is None:
        raise click.BadParameter("write a number with m, h or d, such as 90m, 24h or 7d")
    return int(match[1]) * UNITS_MS[match[2]]


def shown_age(age_ms: int) -> str:
    """As it is given, in whole days, hours or minutes."""
    unit = next(unit for unit in ("d", "h", "m") if age_ms % UNITS_MS[unit] == 0 or unit == "m")
    return f"{age_ms // UNITS_MS[unit]}{unit}"


def store_option(command: Command) -> Command:
    return click.option(
        "--store",
        "store_options",
        multiple=True,
        callback=_store_options,
        metavar="KEY=VALUE",
        help=STORE.hint,
    )(command)


def json_option(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)
