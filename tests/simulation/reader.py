"""Those who read a version of the table as a whole: with a lease, as in a `with` block, or without one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from lakecommit.concurrency.signal import Bell
from lakecommit.errors import CorruptState, InvalidInput, LakecommitError, LeaseLost, StoreError, VersionsGone
from lakecommit.leases.holder import keep, let_go
from lakecommit.leases.keeping import Keeper
from lakecommit.leases.removals import Removals
from lakecommit.leases.taking import Parts
from lakecommit.leases.who import Who

from .names import rows_of
from .process import Process
from .reading_story import Actor
from .store import Handle
from .versions_model import Wants, everything
from .violations import Violation
from .world import World

Meets = Callable[[Process], Awaitable[None]]


class FileMissing(Exception):
    """What Spark's task fails with, and the batch with it."""


class JudgedKeeper(Keeper):
    """Says what it is told, as soon as it is told. `wants` is the model's, which shares nothing with lakecommit's."""

    def __init__(self, process: Process, parts: Parts, ttl_ms: int, lease: str, wants: Wants) -> None:
        super().__init__(parts, "simulated", lease, ttl_ms)
        self._process = process
        self._leases = process.world.model.leases
        self._wants = wants
        # The newest version that whoever holds it may move it on to.
        self.at_most: Callable[[], int | None] = lambda: None
        self._is_released = False

    async def _judged(self, work):  # type: ignore[no-untyped-def]
        before, lost = self._taken, self._lost
        self._leases.looks(self._process)
        try:
            found = await work
        except LeaseLost as error:
            if lost is None:
                asked = self._version if self._version is not None else 0
                self._leases.lost(self._process, asked, self._wants, error)
            raise
        if self._taken is not before and self._version is not None and not self._is_released:
            self._leases.told(self._process, self._version, self._wants, self.at_most())
        return found

    async def begin(self, newest):  # type: ignore[no-untyped-def]
        return await self._judged(super().begin(newest))

    async def take(self, version: int) -> None:
        await self._judged(super().take(version))

    async def renew(self, parts_of_ttl: int | None = None) -> None:
        await self._judged(super().renew(parts_of_ttl))

    async def look(self) -> None:
        await self._judged(super().look())

    async def release(self) -> bool:
        self._is_released = True
        self._leases.lets_go(self._process)
        return await super().release()


class BatchReader:
    """Reads one version, slowly."""

    def __init__(self, world: World, actor: Actor, span_ms: int, meets: Meets | None = None) -> None:
        """`meets` is waited for before a lease is taken."""
        story = world.reading
        troubled = world.chaos > 0
        self.process = process = Process(world, actor.name, (story.kills, story.sleeps) if troubled else (0.0, 0.0))
        process.rng, process.skew_ms = actor.rng, story.draw_skew_ms(actor.rng)
        process.reads_table, process.slowness = True, story.slow_readers
        self._ttl_ms = actor.ttl_ms()
        process.draw_sleep_ms = lambda: actor.sleep_ms(self._ttl_ms)
        self._actor = actor
        self._meets = meets
        self._span_ms = span_ms
        self._troubled = troubled
        self._holds = not troubled or meets is not None or actor.rng.random() < 0.85
        self._rows: list[int] = []
        self.done = False

    def start(self) -> None:
        self.process.world.count("batch readers")
        self.process.world.note(self.process.name, "starts", None, "with a lease" if self._holds else "without a lease")
        self.process.run(self._main())

    async def _main(self) -> None:
        process, world, actor = self.process, self.process.world, self._actor
        self._store = store = Handle(process)
        parts = {"clock": process.clock, "new_id": actor.new_id, "random": actor.rng.random}
        self._table = world.format.open(store, **parts)
        self._newest = world.model.versions.newest
        self._disturbed = world.model.upkeep.disturbances
        try:
            version = await (self._leased() if self._holds else self._read(self._asked()))
        except FileMissing as error:
            world.note(process.name, "fails", None, f"{error} is not there")
            world.count("readers that missed a file")
        except LakecommitError as error:
            world.note(process.name, "fails", None, f"{type(error).__name__}: {error}")
            world.count(f"readers that failed: {type(error).__name__}")
            if not self._is_justified(error):
                raise Violation(f"{process.name} fails for no reason: {type(error).__name__}: {error}") from error
        else:
            self._check(version)

    def _asked(self) -> int | None:
        """Often an older version."""
        if self._actor.rng.random() < (0.2 if self._meets else 0.6):
            return None
        return max(0, self._newest - int(self._actor.rng.random() * 4))

    async def _leased(self) -> int:
        process, actor = self.process, self._actor
        parts = Parts(
            self._store, Removals(self._table), Who(process.name), actor.new_id, process.clock, actor.rng.random
        )
        keeper = JudgedKeeper(process, parts, self._ttl_ms, actor.new_id(), everything)
        bell, over = Bell(process.clock), False
        asked = self._asked() if self._troubled else None
        try:
            if asked is None:
                await keeper.begin(self._newest_there)
            else:
                version = await self._newest_there(asked)
                if self._meets is not None:
                    await self._meets(process)
                await keeper.take(version)
            process.spawn(keep(keeper, parts, bell, lambda: over))
            assert keeper.version is not None
            version = await self._read(keeper.version, keeper)
            await keeper.look()
            return version
        finally:
            over = True
            bell.ring()
            if process.alive:
                await let_go(keeper, parts)

    async def _newest_there(self, asked: int | None = None) -> int:
        state = await self._table.at(asked)
        assert state is not None, "there is a table"
        return state.version

    async def _read(self, version: int | None, keeper: Keeper | None = None) -> int:
        state = await self._table.at(version)
        assert state is not None, "there is a table"
        files = [file async for page in self._table.live(state) for file in page]
        for file in files:
            await self.process.sleep_ms(int(self._actor.rng.random() * self._span_ms / max(1, len(files))))
            stored = await self._store.get(file.path)
            if stored is None:
                raise FileMissing(file.path)
            self._rows += rows_of(stored.body)
            if keeper is not None:
                keeper.check()
        return state.version

    def _check(self, version: int) -> None:
        world = self.process.world
        expected = world.model.versions.rows(version)
        if sorted(self._rows) != expected:
            raise Violation(f"{self.process.name} reads {sorted(self._rows)} of version {version}, not {expected}")
        world.note(self.process.name, "has read", None, f"version {version}, {len(expected)} rows")
        world.count("versions read")
        self.done = True

    def _is_justified(self, error: LakecommitError) -> bool:
        if isinstance(error, LeaseLost):
            # It was judged when it was told.
            return True
        if isinstance(error, StoreError):
            return self._troubled
        disturbed = self.process.world.model.upkeep.disturbances != self._disturbed
        cleaned = bool(self.process.world.counts.get("log versions cleaned up"))
        return isinstance(error, InvalidInput | VersionsGone | CorruptState) and (cleaned or disturbed)
