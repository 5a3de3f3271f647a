"""How a stream follows the log of its table: where it is there, and how far the table is."""

from __future__ import annotations

import logging
from dataclasses import replace

from lakecommit.errors import InvalidInput, VersionsGone
from lakecommit.formats.base import TableState
from lakecommit.formats.versions import ReadVersions
from lakecommit.reading.planning.containing import as_in
from lakecommit.reading.planning.judging import Reading
from lakecommit.reading.planning.log_walk import Begun, Cutting, Live, Until, UpTo, Walked, walk
from lakecommit.reading.planning.offsets import NO_VERSION, At, Offset, in_log
from lakecommit.reading.planning.starting import first_left
from lakecommit.reading.types import readable
from lakecommit.schema import parse

_log = logging.getLogger("lakecommit.reading")


class LogFollower:
    """Of one run of a query. `newest` is the table as it was seen last, and `reading` what the query expects of it.
    `state` is the table after the last version that lies behind, which may be where the next batch begins."""

    def __init__(
        self, versions: ReadVersions, reading: Reading, cutting: Cutting, live: Live, fail_on_data_loss: bool
    ) -> None:
        self._versions = versions
        self._cutting = cutting
        self._live = live
        self._fail_on_data_loss = fail_on_data_loss
        self.reading = reading
        self.newest: TableState | None = None
        self.state: TableState | None = None
        # The version that the batch before has ended in the middle of.
        self._begun: Begun | None = None

    async def look(self) -> TableState:
        self.newest = await self.at(None)
        return self.newest

    async def at(self, version: int | None) -> TableState:
        state = await self._versions.at(version)
        if state is None:
            raise InvalidInput(
                f"there is no table at {self._versions.location}; check the location, or start the query once there is"
            )
        return state

    def reading_of(self, table: TableState) -> Reading:
        """From now on those of the query's columns that this table has are known by what files call them, too."""
        schema = as_in(self.reading.schema, readable(parse(table.schema)))
        self.reading = replace(self.reading, schema=schema)
        return self.reading

    async def walk(self, begins: Offset, until: Until) -> Walked:
        """What comes after `begins`, which is in the log."""
        cutting = replace(self._cutting, split_bytes=begins.plan.split_bytes)
        if self._begun is not None and not self._begun.is_at(begins.at):
            self.stop()
        try:
            state = None if begins.version == NO_VERSION else await self._state_at(begins.version)
            walked = await walk(
                self._versions,
                state,
                begins.at,
                until,
                table_id=begins.table_id,
                reading=self.reading if state is None else self.reading_of(state),
                cutting=cutting,
                live=self._live,
                begun=self._begun,
            )
        except VersionsGone as error:
            if self._fail_on_data_loss:
                raise
            _log.warning("rows are lost, as failOnDataLoss=false allows: %s", error)
            return await self._past_the_gap(begins, until)
        if walked.begun is not self._begun:
            self.stop()
            self._begun = walked.begun
        self.state = walked.state
        if walked.seen is not None and (self.newest is None or walked.seen.version > self.newest.version):
            # Limits end a walk before it has seen how far the table is.
            self.newest = walked.seen if walked.seen_all else await self.at(None)
        return walked

    async def first_kept(self, version: int) -> int:
        """The version itself, or if the log no longer leads to it and rows may be lost, the first one that is left."""
        if self._fail_on_data_loss:
            return version
        try:
            await self._state_at(version)
        except VersionsGone:
            return (await first_left(self._versions, version, await self.look())).version
        return version

    def stop(self) -> None:
        """Lets go of what is kept on local disk."""
        if self._begun is not None:
            self._begun.close()
        self._begun = None

    async def _past_the_gap(self, begins: Offset, until: Until) -> Walked:
        """Nothing of the versions that are gone, up to the first one that the log still leads to. A batch that was
        planned before ends where it ended then."""
        self.state = first = await first_left(self._versions, begins.version, await self.look())
        if isinstance(until, UpTo) and until.takes(first.version + 1):
            return await self.walk(in_log(begins, At(first.version)), until)
        return Walked(end=At(first.version), state=first, seen=first)

    async def _state_at(self, version: int) -> TableState:
        if self.state is not None and self.state.version == version:
            return self.state
        try:
            return await self.at(version)
        except InvalidInput as error:
            # It was read once, so that it is not one that is yet to come.
            raise VersionsGone(str(error)) from error
