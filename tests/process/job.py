"""What a driver process is told to do: one stream of files, or of a table, into one table."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Job:
    """Each file of `source` is an epoch. With `hosts` the tasks run in executors of their own, one on each host.

    Without `partitions` each task reads a part of the input itself, and there is no shuffle. With `complete` each epoch
    replaces the table with all rows so far. With `reading`, the options of a stream from a table, `source` is one.
    """

    source: str
    location: str
    checkpoint: str
    options: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    partitions: int | None = 2
    files_per_epoch: int = 1
    hosts: tuple[str, ...] = ()
    schema: str = "id long, text string"
    complete: bool = False
    reading: dict[str, str] | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        values = json.loads(text)
        return cls(**{**values, "hosts": tuple(values["hosts"])})
