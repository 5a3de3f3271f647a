"""Commands that a message asks somebody to run: complete, and quoted for a shell."""

from __future__ import annotations

import shlex


def command(verb: str, location: str, *arguments: str) -> str:
    return shlex.join(("lakecommit", verb, location, *arguments))
