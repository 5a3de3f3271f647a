"""`lakecommit doctor`: the verb, and what it looks for in the environment."""

from lakecommit.cli.verbs.doctor.verb import command

__all__ = ["command"]
