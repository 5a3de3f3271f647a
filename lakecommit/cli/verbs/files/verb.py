"""`lakecommit files TABLE`: the committed files of the newest version, for readers that know no log."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence

import click

from lakecommit.cli.arguments import json_option, run, store_option
from lakecommit.cli.tables import table_at
from lakecommit.cli.verbs.files.forms import FORMS, Columns
from lakecommit.clock import SystemClock
from lakecommit.errors import InvalidInput
from lakecommit.formats.base import TableState
from lakecommit.formats.files import CommittedFile
from lakecommit.observing.files import open_for_files
from lakecommit.schema import parse
from lakecommit.storage.base import Store
from lakecommit.storage.location import open_store


async def print_files(store: Store, form: str | None, *, as_json: bool) -> None:
    """Page by page: a table may have more files than a list should."""
    state, pages = await open_for_files(await table_at(store, SystemClock()))
    if form is not None and state is None:
        raise InvalidInput(
            f"{store.location} has no record of lakecommit, so that nobody knows the types of its partition columns; "
            "leave --form out"
        )
    if form is not None and state is not None:
        await _print_form(store.location, state, pages, form)
    elif as_json:
        await _print_json(pages)
    else:
        async for page in pages:
            click.echo("\n".join(file.location for file in page))


@click.command("files")
@click.argument("location", metavar="TABLE")
@click.option("--form", type=click.Choice(list(FORMS)), help="Print it as text to paste into one of these.")
@store_option
@json_option
def command(location: str, form: str | None, store_options: Mapping[str, str], as_json: bool) -> None:
    """List the data files of TABLE's newest version, one a line: what is committed, and nothing else.

    For readers that would take every file that they find: DuckDB, pyarrow, Polars. A table whose files alone do not say
    what rows it has is refused, as one with deletion vectors. What is listed stays for as long as the table's own rules
    say, also if it is replaced meanwhile.
    """
    if form is not None and as_json:
        raise click.UsageError("--form and --json are two forms: give one of them")
    run(print_files(open_store(location, store_options), form, as_json=as_json))


async def _print_json(pages: AsyncIterator[Sequence[CommittedFile]]) -> None:
    begun = False
    async for page in pages:
        for file in page:
            said = json.dumps({"location": file.location, "sizeBytes": file.size_bytes}, ensure_ascii=False)
            click.echo(f"{',' if begun else '['}\n  {said}", nl=False)
            begun = True
    click.echo("\n]" if begun else "[]")


async def _print_form(
    location: str, state: TableState, pages: AsyncIterator[Sequence[CommittedFile]], name: str
) -> None:
    form = FORMS[name](location, _partition_columns(state))
    begun = False
    async for page in pages:
        if page and not begun:
            click.echo(form.head)
            begun = True
        click.echo("\n".join(f"    {form.line(file.location)}," for file in page))
    if not begun:
        raise InvalidInput(f"{location} has no files yet, and {name} opens no empty list; come back when it has rows")
    click.echo(form.tail)


def _partition_columns(state: TableState) -> Columns:
    types = {field.name.lower(): field.type for field in parse(state.schema).fields}
    return [(name, types[name.lower()]) for name in state.partition_columns]
