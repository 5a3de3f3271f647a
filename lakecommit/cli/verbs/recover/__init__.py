"""`lakecommit recover`: the verb, and how each of its ways is shown: commit, give up, export."""

from lakecommit.cli.verbs.recover.verb import command

__all__ = ["command"]
