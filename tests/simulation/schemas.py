"""What the rows of a seed look like. In most seeds all have one column; in some the drivers and batch writes bring
others, too, and have the table grow: `mergeSchema`.

Its own random numbers leave the stories of all other seeds as they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

EVOLVING_SEEDS = 0.12
COLUMNS = ("a", "b", "c", "d")
# Of two types, so that whoever comes second is refused.
ODD = "odd"
# Of a type that becomes wider, in tables that allow it.
WIDE = "wide"


@dataclass(frozen=True, slots=True)
class Rows:
    """What a writer brings: a schema, and whether the table is to have all of its columns."""

    schema: str
    merges: bool = False


def schema_of(types: Mapping[str, str]) -> str:
    fields = [{"name": name, "type": type_, "nullable": True, "metadata": {}} for name, type_ in types.items()]
    return json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"))


PLAIN = Rows(schema_of({"id": "long"}))


class Schemas:
    def __init__(self, seed: int, *, on_delta: bool) -> None:
        self.rng = Random(f"evolving tables {seed}")
        self.on = self.rng.random() < EVOLVING_SEEDS and on_delta
        self.properties: dict[str, str] = {}
        if self.on and self.rng.random() < 0.6:
            self.properties["delta.columnMapping.mode"] = "id" if self.rng.random() < 0.5 else "name"
        if self.on and self.rng.random() < 0.3:
            self.properties["delta.enableTypeWidening"] = "true"
        self._columns = 0.9 if self.rng.random() < 0.3 else 0.4

    def of_a_stream(self) -> Rows:
        """What a run of a query brings. One that has nothing new need not ask for anything."""
        return self._drawn(("integer", "long"))

    def _drawn(self, wide: tuple[str, ...]) -> Rows:
        if not self.on or self.rng.random() < 0.2:
            return PLAIN
        types = {name: "long" for name in COLUMNS if self.rng.random() < self._columns}
        if "delta.enableTypeWidening" in self.properties and self.rng.random() < 0.6:
            types[WIDE] = wide[int(self.rng.random() * len(wide))]
        names = list(types)
        self.rng.shuffle(names)
        return Rows(schema_of({"id": "long", **{name: types[name] for name in names}}), merges=True)

    def of_a_batch(self, *, odd: bool) -> Rows:
        """The same for a batch write, which brings a column of one type or another where it may be `odd`. Other than
        those of a stream, its numbers are not cast."""
        rows = self._drawn(("long",))
        if not (rows.merges and odd and self.rng.random() < 0.3):
            return rows
        fields = json.loads(rows.schema)["fields"]
        types = {field["name"]: field["type"] for field in fields}
        return Rows(schema_of({**types, ODD: "long" if self.rng.random() < 0.5 else "string"}), merges=True)
