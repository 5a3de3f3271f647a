"""What to do about a query that cannot be recovered as it is."""

from __future__ import annotations

from lakecommit.commands import command
from lakecommit.errors import LakecommitError, SchemaMismatch, StoreError, TableMadeAnew
from lakecommit.formats.settings import FormatSettings
from lakecommit.model import QueryId
from lakecommit.restarting.presence import FilesGone


def remedy(location: str, table_id: str, query: QueryId, error: LakecommitError, settings: FormatSettings) -> str:
    """The commands that get `query` of the table at `location` past `error`."""
    verb = command("recover", location, "--query", query)
    if isinstance(error, StoreError):
        return f"when the store answers again: {verb}"
    give_up = f"to save its files: {verb} --export DIR\nto give it up once they are saved: {verb} --discard"
    if isinstance(error, TableMadeAnew):
        return f"to add it to the table as it is: {verb} --accept-table-id {table_id} --apply\n{give_up}"
    if isinstance(error, FilesGone):
        return f"to save what is left of its files first: {verb} --export DIR"
    if isinstance(error, SchemaMismatch) and settings.refits:
        return f"to commit it: {settings.refits}, then {verb} --apply\n{give_up}"
    return give_up
