"""`lakecommit files`: the verb, and the texts that other readers take."""

from lakecommit.cli.verbs.files.verb import command

__all__ = ["command"]
