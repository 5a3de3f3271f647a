"""What lakecommit knows of a directory that Spark's log has no words for: `.lakecommit.json`. Pure.

The record is created if absent, before the first data file, and never written over. What changes later (who owns the
directory, and a schema that has got columns) is a record with the next number; the highest counts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from lakecommit.errors import CorruptState
from lakecommit.formats.plan import BATCH
from lakecommit.model import QueryId
from lakecommit.schema import parse, to_json

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Record:
    """`owner` is the query that a stream's directory belongs to, `BATCH` for batch writes, and None as long as no epoch
    of the stream is sealed. `root` is the directory as readers name it; `interval`, after how many entries there is a
    compact."""

    number: int
    table_id: str
    owner: str | None
    schema: str
    partition_columns: tuple[str, ...]
    root: str
    interval: int

    @property
    def query(self) -> QueryId | None:
        """The stream that it belongs to."""
        return None if self.owner in (None, BATCH) else QueryId(str(self.owner))

    def to_json(self) -> bytes:
        said = {
            "format": FORMAT,
            "table": self.table_id,
            "owner": self.owner,
            "root": self.root,
            "interval": self.interval,
            "partitionColumns": list(self.partition_columns),
            "schema": json.loads(self.schema),
        }
        return json.dumps(said, indent=1, ensure_ascii=False).encode() + b"\n"

    @staticmethod
    def from_json(body: bytes, number: int, name: str) -> Record:
        """Raises `CorruptState` if it is no record, or one of a later lakecommit."""
        try:
            said = json.loads(body)
            if said["format"] != FORMAT:
                raise CorruptState(f"{name} has the format {said['format']}, which this version does not know: upgrade")
            return Record(
                number=number,
                table_id=str(said["table"]),
                owner=None if said["owner"] is None else str(said["owner"]),
                schema=to_json(parse(json.dumps(said["schema"]))),
                partition_columns=tuple(map(str, said["partitionColumns"])),
                root=str(said["root"]),
                interval=int(said["interval"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptState(f"{name} is damaged ({error!r}): restore it from a backup") from error
