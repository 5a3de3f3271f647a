"""`lakecommit VERB`: the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module

import click

from lakecommit.errors import LakecommitError

# Each verb is imported when it is asked for: `status` must not wait for Spark.
VERBS: Mapping[str, str] = {
    "clean": "lakecommit.cli.clean",
    "demo": "lakecommit.cli.demo",
    "doctor": "lakecommit.cli.doctor",
    "explain": "lakecommit.cli.explain",
    "history": "lakecommit.cli.history",
    "inspect": "lakecommit.cli.inspect",
    "recover": "lakecommit.cli.recover",
    "status": "lakecommit.cli.status",
}


class Verbs(click.Group):
    """Finds a verb as the `command` of its module, and turns our own errors into one message and exit code 1."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command = import_module(VERBS[cmd_name]).command
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
