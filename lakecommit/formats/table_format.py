"""All that lakecommit asks of a table format, for code that assembles the parts."""

from __future__ import annotations

from typing import Protocol

from lakecommit.formats.base import Commit, Describe, Maintain, Open, PlanWrite, ReadFiles, Sweep, Testify
from lakecommit.formats.vacuuming import Vacuum
from lakecommit.formats.versions import ReadVersions


class TableFormat(
    Open, PlanWrite, Commit, Testify, Describe, ReadFiles, ReadVersions, Sweep, Maintain, Vacuum, Protocol
):
    """All verbs together. A function asks for just the verbs that it uses."""

    @property
    def name(self) -> str:
        """The one that `tableFormat` takes."""
