"""Commands that a message asks somebody to run: complete, so that they can be copied and pasted as they are."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import click
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from lakecommit.storage.options import CLIENT_KEYS, STORE_KEYS, Value

# Values of these are no secrets. All others are shown as dots: whoever runs the command knows them.
_SHOWN = frozenset({"region", "default_region", "endpoint", "base_url", "account_name", "request_payer", "timeout"})
_INDENT = "    "


@dataclass(frozen=True, slots=True)
class Hint:
    """`words` are those of a command line, not quoted; `why` says in a few words what it is for."""

    why: str
    words: tuple[str, ...]

    @property
    def command(self) -> str:
        return shlex.join(self.words)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(f"{self.why}:")
        for line in _lines(self.words, options.max_width):
            # What a terminal wraps is copied as one line; what is wrapped here would be two.
            yield Text(line, no_wrap=True, overflow="ignore", style="bold")


def hint(why: str, verb: str, location: str, *arguments: str) -> Hint:
    """A command about the table at `location`, with the store options of the command that is running."""
    return Hint(why, ("lakecommit", verb, location, *arguments, *_store_arguments()))


def again(why: str, location: str, *more: str) -> Hint:
    """The command that is running, with `more` options. `location` is that of its table, whatever was typed."""
    context = click.get_current_context()
    given: list[str] = []
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        # What `--store` is shown as is decided elsewhere; options with a callback are read, not typed.
        if isinstance(parameter, click.Option) and parameter.callback is None and value and parameter.name != "as_json":
            given += [parameter.opts[0]] if parameter.is_flag else [parameter.opts[0], str(value)]
    return hint(why, context.info_name or "", location, *given, *more)


def _lines(words: tuple[str, ...], width: int) -> Iterator[str]:
    """The command on one line where it fits, else on several that a shell reads as one."""
    whole = _INDENT + shlex.join(words)
    if len(whole) <= width:
        yield whole
        return
    line = _INDENT + shlex.join(words[: _options(words)[0]])
    for begin, end in pairwise([*_options(words), len(words)]):
        option = shlex.join(words[begin:end])
        if len(line) + len(option) + len("  \\") > width:
            yield f"{line} \\"
            line = _INDENT * 2 + option
        else:
            line += f" {option}"
    yield line


def _options(words: tuple[str, ...]) -> list[int]:
    """Where options begin: a line is broken only there."""
    return [number for number, word in enumerate(words) if word.startswith("--")] or [len(words)]


def _store_arguments() -> list[str]:
    context = click.get_current_context(silent=True)
    given: Mapping[str, str] = {} if context is None else context.params.get("store_options") or {}
    return [part for key, value in given.items() for part in ("--store", f"{key}={_shown(key, value)}")]


def _shown(key: str, value: str) -> str:
    shapes = {shape for keys in (CLIENT_KEYS, *STORE_KEYS.values()) for name, shape in keys.items() if name == key}
    harmless = key in _SHOWN or not shapes & {Value.TEXT}
    return value if shapes and harmless and "@" not in value else "…"
