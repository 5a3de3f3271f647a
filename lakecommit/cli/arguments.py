"""What the verbs have in common: `--store`, `--json`, and running a coroutine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import click

from lakecommit.options.declarations import STORE

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
