"""What the objects of leases and vacuums say of who put them. For people: nothing is decided by it."""

from __future__ import annotations

import getpass
import json
import os
import socket
from dataclasses import dataclass

_LONGEST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Who:
    """`holder` is what people call it: a query, a notebook, a command."""

    holder: str = ""
    user: str = ""
    host: str = ""
    process: int | None = None

    def to_json(self) -> bytes:
        said = {"holder": self.holder, "user": self.user, "host": self.host, "process": self.process}
        return json.dumps({name: value for name, value in said.items() if value}).encode()

    def __str__(self) -> str:
        place = "@".join(part for part in (self.user, self.host) if part)
        process = "" if self.process is None else f"process {self.process}"
        return ", ".join(part for part in (self.holder, place, process) if part) or "somebody who did not say who"


def this_process(holder: str) -> Who:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        # A container may run as a number that has no name.
        user = ""
    return Who(holder, user, socket.gethostname(), os.getpid())


def who_of(body: bytes) -> Who:
    """What a body says, as far as it can be read: it may be a later release's, or nobody's."""
    try:
        said = json.loads(body)
    except ValueError:
        return Who()
    if not isinstance(said, dict):
        return Who()
    holder, user, host = (str(said.get(name) or "")[:_LONGEST_SHOWN] for name in ("holder", "user", "host"))
    process = said.get("process")
    return Who(holder, user, host, process if type(process) is int else None)
