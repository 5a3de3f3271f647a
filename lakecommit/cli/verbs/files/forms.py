"""A list of files as text to paste into DuckDB, pyarrow and Polars. Pure.

Values of partition columns are in the paths alone, and a reader that is not told their types guesses them: 007 would be
7. So the text says the types.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from lakecommit.errors import InvalidInput
from lakecommit.formats.files import reader_location
from lakecommit.schema import DataType, Primitive

# Each column with its type, in the order of the directories.
Columns = Sequence[tuple[str, DataType]]
_DECIMAL = re.compile(r"decimal\((\d+), *(\d+)\)")


class Form(ABC):
    """What comes before the files, each of them, and what comes after."""

    def __init__(self, location: str, columns: Columns) -> None:
        self.location = reader_location(location).rstrip("/")
        self.columns = columns

    @property
    @abstractmethod
    def head(self) -> str: ...

    @property
    @abstractmethod
    def tail(self) -> str: ...

    def line(self, location: str) -> str:
        return json.dumps(location, ensure_ascii=False)

    def _types(self, names: Mapping[str, str], decimal: str) -> dict[str, str]:
        """What the reader calls the types of the columns. One that it has no word for is the text that the path has: a
        guess would be wrong for some values."""
        found: dict[str, str] = {}
        for column, data_type in self.columns:
            name = data_type.name if isinstance(data_type, Primitive) else ""
            digits = _DECIMAL.fullmatch(name)
            found[column] = decimal.format(*digits.groups()) if digits else names.get(name, names["string"])
        return found


class DuckDb(Form):
    _NAMES: Mapping[str, str] = {
        "string": "VARCHAR",
        "byte": "TINYINT",
        "short": "SMALLINT",
        "integer": "INTEGER",
        "long": "BIGINT",
        "boolean": "BOOLEAN",
        "date": "DATE",
    }

    @property
    def head(self) -> str:
        return "SELECT * FROM read_parquet(["

    @property
    def tail(self) -> str:
        more = ["union_by_name = true", f"hive_partitioning = {'true' if self.columns else 'false'}"]
        # A type in brackets has to be quoted.
        if types := self._types(self._NAMES, "'DECIMAL({}, {})'"):
            more.append("hive_types = {" + ", ".join(f"{_sql(name)}: {word}" for name, word in types.items()) + "}")
        return f"], {', '.join(more)});"

    def line(self, location: str) -> str:
        return _sql(location)


class PyArrow(Form):
    _NAMES: Mapping[str, str] = {
        "string": "pa.string()",
        "byte": "pa.int8()",
        "short": "pa.int16()",
        "integer": "pa.int32()",
        "long": "pa.int64()",
        "boolean": "pa.bool_()",
        "date": "pa.date32()",
    }

    @property
    def head(self) -> str:
        return "import pyarrow as pa\nimport pyarrow.dataset as ds\n\ndataset = ds.dataset(["

    @property
    def tail(self) -> str:
        more = ['format="parquet"']
        if self._is_remote:
            more.append(f"filesystem={json.dumps(self.location, ensure_ascii=False)}")
        # It makes no decimals of texts.
        if types := self._types(self._NAMES, self._NAMES["string"]):
            fields = ", ".join(f"({json.dumps(name, ensure_ascii=False)}, {word})" for name, word in types.items())
            more.append(f'partitioning=ds.partitioning(pa.schema([{fields}]), flavor="hive")')
        return f"], {', '.join(more)})"

    def line(self, location: str) -> str:
        """It takes a list of paths below a file system, and no list of URIs."""
        if not self._is_remote:
            return super().line(location)
        below = location.removeprefix(f"{self.location}/")
        if below == location:
            raise InvalidInput(
                f"{location} is not below {self.location}, and pyarrow opens files of one place at a time; leave out "
                "--form and open them one by one"
            )
        return super().line(below)

    @property
    def _is_remote(self) -> bool:
        return "://" in self.location


class Polars(Form):
    _NAMES: Mapping[str, str] = {
        "string": "pl.String",
        "byte": "pl.Int8",
        "short": "pl.Int16",
        "integer": "pl.Int32",
        "long": "pl.Int64",
        "boolean": "pl.Boolean",
        "date": "pl.Date",
    }

    @property
    def head(self) -> str:
        return "import polars as pl\n\nframe = pl.scan_parquet(["

    @property
    def tail(self) -> str:
        more = ["glob=False"]
        if self.columns:
            more.append("hive_partitioning=True")
            types = self._types(self._NAMES, "pl.Decimal({}, {})")
            said = ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {word}" for name, word in types.items())
            more.append(f"hive_schema={{{said}}}")
        return f"], {', '.join(more)})"


FORMS: Mapping[str, type[Form]] = {"duckdb": DuckDb, "pyarrow": PyArrow, "polars": Polars}


def _sql(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
