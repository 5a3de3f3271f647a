"""`lakecommit status`: the verb, whether a query is well, and how that is shown, once and live."""

from lakecommit.cli.verbs.status.verb import command

__all__ = ["command"]
