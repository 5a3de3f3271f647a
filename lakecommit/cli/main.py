"""`lakecommit VERB`: the command line."""

from __future__ import annotations

import json
import pkgutil
from importlib import import_module

import click

from lakecommit.cli import verbs
from lakecommit.errors import LakecommitError


class Verbs(click.Group):
    """Finds a verb as the `command` of its module in `verbs`; turns our own errors into one message and exit code 1.

    A module is imported when its verb is asked for, and all of them to list the verbs: none imports Spark at its top.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(module.name for module in pkgutil.iter_modules(verbs.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command = import_module(f"{verbs.__name__}.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """With `--json`, an error is JSON on standard output, too, whatever it is about; the exit code is the same."""
        as_json = "--json" in ctx.args
        try:
            return super().invoke(ctx)
        except LakecommitError as error:
            if as_json:
                _tell(str(error), type(error).__name__, error.entry)
                ctx.exit(1)
            raise click.ClickException(str(error)) from None
        except click.ClickException as error:
            if not as_json:
                raise
            _tell(error.format_message(), "UsageError", "invalid-input")
            ctx.exit(error.exit_code)


def _tell(message: str, kind: str, entry: str) -> None:
    click.echo(json.dumps({"error": message, "kind": kind, "explain": entry}, ensure_ascii=False))


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="lakecommit")
def cli() -> None:
    """Looks into tables that lakecommit writes."""


def main() -> None:
    cli(prog_name="lakecommit")
