"""Cleaning up behind a streaming query: losers soon after their epoch is sealed, an epoch's state when it is due."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from lakecommit.clock import Clock, Moment
from lakecommit.concurrency.parallel import in_parallel
from lakecommit.formats.base import TableState, marks_of
from lakecommit.formats.evidence import Holding
from lakecommit.listening.places import told_up_to
from lakecommit.model import RELEASE_AGE_MS, Epoch, Marks, QueryId, Seal, own_mark_id
from lakecommit.progress.standing import Standing, standing_of
from lakecommit.progress.table import ReadTable
from lakecommit.releasing.losers import losers, releasable
from lakecommit.releasing.objects import CleanStore, NamedFiles, delete, read_files, without_the_tables
from lakecommit.releasing.replaced import EpochPresence, judge
from lakecommit.releasing.versions import OwnVersions
from lakecommit.state import layout
from lakecommit.state.chain import Link, chained
from lakecommit.state.stored import NamedManifest, StoredSeal, find_seal, list_manifests, list_sealed_epochs

# How often a query that seals nothing is looked at, while it has state that is too young to go.
WAITING_STEP_MS = RELEASE_AGE_MS // 4
MAX_UNSWEPT = 1000
# Where the seal does not say who has lost.
_ASKED_OF_THE_LOG = (Standing.STRAY, Standing.REPEATED)
# What is in the table.
_HELD = (Standing.DONE, Standing.REPEATED)

# The newest epoch of a query that all of its listeners were told of, None where it has none.
ToldUpTo = Callable[[QueryId], Awaitable[Epoch | None]]


@dataclass(frozen=True, slots=True)
class QueryCleanUp:
    """What there is to delete behind a query.

    `lost` are the files of attempts that have lost, by manifest; `released` the epochs whose state goes, `manifests`
    what goes of it. `untold` is how many more would go if listeners were told of them. `newest_seal` is the newest that
    was seen; `quiet`: afterwards nothing is left to wait for.

    `replaced` are done epochs that the log does not hold any more: somebody wrote over their version. They have to be
    committed again; of those in `unknown` the log cannot tell. `rewritten` says that marks may have gone back, too;
    `went_back`, that the query's own mark has, and that something of it is pending again.
    """

    query: QueryId
    lost: NamedFiles
    manifests: Sequence[NamedManifest]
    released: Sequence[Epoch]
    untold: int
    newest_seal: Epoch | None
    quiet: bool
    replaced: Sequence[Epoch] = ()
    unknown: Sequence[Epoch] = ()
    rewritten: bool = False
    went_back: bool = False

    def __bool__(self) -> bool:
        return bool(self.lost.paths or self.manifests or self.released)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What was deleted, and how much of it was not confirmed and is left for the next time.

    `problems` are records that cannot be read, and epochs of which nobody knows whether they are in the table: they
    stay, and so does all that is newer. `replaced`, `rewritten` and `went_back` are those of `QueryCleanUp`.
    """

    files: int = 0
    manifests: int = 0
    seals: int = 0
    unconfirmed: int = 0
    problems: tuple[str, ...] = ()
    replaced: tuple[Epoch, ...] = ()
    rewritten: bool = False
    went_back: bool = False


class QueryCleaner:
    """What it remembers saves requests (seals and their links), or is about time (when it first saw what)."""

    def __init__(
        self,
        store: CleanStore,
        table_format: ReadTable,
        query: QueryId,
        clock: Clock,
        told: ToldUpTo | None = None,
    ) -> None:
        """`told` says how far listeners were told; None reads the places of all that ever listened."""
        self._told = told or partial(told_up_to, store)
        self._store = store
        self._format = table_format
        self._query = query
        self._clock = clock
        self._links: dict[Epoch, Link] = {}
        self._unswept: dict[Epoch, StoredSeal] = {}
        self._swept = Epoch(-1)
        self._marks_seen: deque[tuple[Epoch, Moment]] = deque()
        self._came_ms: dict[NamedManifest, int] | None = None
        self.versions = OwnVersions(table_format, query)
        # The newest own mark that was in the table, whose id is `_table_id`.
        self._reached = -1
        self._table_id: str | None = None
        # When the next step has something to look for, on the boot clock; None where nothing is left to wait for.
        self._due_ms: int | None = 0

    def sealed(self, stored: StoredSeal) -> None:
        """A seal of the query became known: ours, or that of somebody who was first."""
        self._links[stored.seal.epoch] = stored.link
        self._unswept[stored.seal.epoch] = stored
        while len(self._unswept) > MAX_UNSWEPT:
            # What is not remembered is read again.
            del self._unswept[min(self._unswept)]
        self._due_ms = 0

    def committed(self, version: int, holding: Holding) -> None:
        """This process has committed a version, which has this of the query."""
        self.versions.note(version, holding)
        self._reached = max(self._reached, -1 if holding.own is None else holding.own)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is left to wait for, so that this cleaner may be forgotten."""
        return self._due_ms is None

    def look_again(self) -> None:
        """Somebody else may have left something: the next step looks for it."""
        self._due_ms = 0

    async def step(self, known: TableState | None) -> Cleaned:
        """Sweeps what was sealed since the last step and releases what is due. No request where there is nothing.

        `known` is an earlier state of the table: only what is newer has to be read.
        """
        now_ms = self._clock.boot_ms()
        if self._due_ms is None or now_ms < self._due_ms:
            return Cleaned()
        # What is sealed while this step is under way makes the next one due at once.
        waiting_ms = self._due_ms = now_ms + WAITING_STEP_MS
        clean_up = await self.survey(known)
        cleaned = await self.apply(clean_up)
        if self._due_ms == waiting_ms:
            if cleaned.unconfirmed or cleaned.replaced or cleaned.went_back:
                self._due_ms = 0
            elif clean_up.quiet:
                self._due_ms = None
        return cleaned

    async def survey(self, known: TableState | None = None, *, ask_all: bool = False) -> QueryCleanUp:
        """What there is to delete, and what was written over: with `ask_all` among all that is left of the query, else
        among what is about to go, or young."""
        now, before = Moment.of(self._clock), self._reached
        table = await (self._format.open() if known is None else self._format.look(known))
        marks = marks_of(table, self._query)
        behind = self._is_behind(table, marks, before)
        links = await self._read_chain(await list_sealed_epochs(self._store, self._query))
        reached = chained(links.values())
        manifests = await list_manifests(self._store, self._query)
        standings = {
            epoch: standing_of(epoch, marks, sealed=epoch in links, chained=epoch in reached)
            for epoch in links.keys() | manifests.keys()
        }
        young = self._young(manifests, now)
        committed = self._committed_long_ago(table, marks, now)
        due = releasable(standings, committed, young)
        told = await self._told(self._query) if due else None
        released = due if committed is None or told is None else releasable(standings, min(committed, told), young)
        untold = len(due) - len(released)
        done = [epoch for epoch, at in standings.items() if at is Standing.DONE]
        # What is old and stays was asked about before, or will be when it goes; it costs nothing where its version is
        # known.
        young_or_known = {epoch for epoch in done if committed is None or epoch > committed} | self.versions.known(done)
        newest = max(links, default=None)
        if self._format.log_decides and newest not in young:
            # Its state stays, and its files may have lost all the same.
            young_or_known |= {epoch for epoch in done if epoch == newest}
        wanted = done if ask_all else [epoch for epoch in done if epoch in released or epoch in young_or_known]
        presence = await self._presence(table, wanted)
        for epoch in self.versions.foreign(wanted):
            # Another sink has run it: the sealed files have lost, unless the log names them all the same.
            standings[epoch] = Standing.REPEATED
        went_back = presence.rewritten or (behind and Standing.PENDING in standings.values())
        swept = {epoch for epoch in links if epoch > self._swept or (epoch == newest and epoch not in young)}
        judged = {epoch for epoch in swept.union(released) if epoch in manifests}
        seals = await self._seals_of([epoch for epoch in judged if standings[epoch] not in _ASKED_OF_THE_LOG], links)
        # A seal that went away meanwhile was released by somebody else, losers and all.
        judged = {epoch for epoch in judged if epoch in seals or standings[epoch] in _ASKED_OF_THE_LOG}
        lost = await self._lost({epoch: seals.get(epoch) for epoch in sorted(judged)}, standings, manifests)
        # Nothing after an epoch that has to stay is released either: the chain is what tells a seal from a zombie's.
        stays = {named.attempt.epoch for named in lost.damaged} | {
            e for e in released if e in manifests and e not in judged
        }
        stays |= {e for e in released if standings[e] in _HELD and not _is_long_held(e, presence, now)}
        first_kept = min(stays, default=None)
        released = [epoch for epoch in released if first_kept is None or epoch < first_kept]
        unsealed = [
            named
            for epoch in sorted(manifests)
            if standings[epoch] is Standing.UNSEALED and epoch not in young
            for named in manifests[epoch]
        ]
        unnamed = await without_the_tables(self._format, await read_files(self._store, unsealed))
        return QueryCleanUp(
            query=self._query,
            lost=lost.together_with(unnamed),
            manifests=[
                *(named for epoch in released for named in manifests.get(epoch, ())),
                *(named for named in unsealed if named not in unnamed.damaged),
            ],
            released=released,
            untold=untold,
            newest_seal=newest,
            replaced=[seal.epoch for seal in presence.lost],
            unknown=presence.unknown,
            rewritten=presence.rewritten
            or (known is not None and table is not None and table.rewritten != known.rewritten),
            went_back=went_back,
            quiet=not (young or presence.lost or presence.unknown or went_back)
            and links.keys() | manifests.keys() <= {newest, *released, *(n.attempt.epoch for n in unsealed)},
        )

    async def apply(self, clean_up: QueryCleanUp) -> Cleaned:
        """Files first, then the manifests that name them, then seals: each only when what it explains is gone."""
        deleted = await delete(self._store, clean_up.lost, clean_up.manifests)
        first_kept = min((named.attempt.epoch for named in deleted.manifests_left), default=None)
        seals = [epoch for epoch in clean_up.released if first_kept is None or epoch < first_kept]
        left: Collection[str] = ()
        if seals:
            left = await self._store.delete([layout.seal_path(self._query, epoch) for epoch in seals])
        for epoch in seals:
            self._links.pop(epoch, None)
        self.versions.forget(seals)
        if clean_up.newest_seal is not None:
            self._swept = clean_up.newest_seal
            self._unswept = {epoch: seal for epoch, seal in self._unswept.items() if epoch > self._swept}
        return Cleaned(
            files=deleted.files,
            manifests=deleted.manifests,
            seals=len(seals) - len(left),
            unconfirmed=deleted.unconfirmed + len(left),
            problems=(*clean_up.lost.damaged.values(), *problem_of(clean_up)),
            replaced=tuple(clean_up.replaced),
            rewritten=clean_up.rewritten,
            went_back=clean_up.went_back,
        )

    def _is_behind(self, table: TableState | None, marks: Marks, before: int) -> bool:
        """Whether the own mark in `table` is less than `before`, which was in it before that was read."""
        table_id = None if table is None else table.table_id
        same = table_id is not None and self._table_id in (None, table_id)
        own = -1 if marks.own is None else marks.own
        self._table_id, self._reached = table_id, max(self._reached, own) if same else own
        return same and own < before

    async def _presence(self, table: TableState | None, epochs: Collection[Epoch]) -> EpochPresence:
        """Whether epochs that are done by the marks are in the log."""
        if table is None:
            return EpochPresence({})
        return await judge(self._store, self._format, self.versions, self._query, epochs, table)

    def _committed_long_ago(self, table: TableState | None, marks: Marks, now: Moment) -> Epoch | None:
        """The newest epoch whose snapshot is older than twice the deadline of an upload.

        From what this process has seen, on both of its clocks; or from what the table says of the mark, which is all
        that a new process has. `now` is from before the table was read; a mark is as young as the moment after, since
        it may have been set while the request was under way.
        """
        if table is None or marks.own is None:
            return None
        after = Moment.of(self._clock)
        if not self._marks_seen:
            set_ms = table.mark_set_ms(own_mark_id(self._query))
            age_ms = 0 if set_ms is None else max(0, now.wall_ms - set_ms)
            self._marks_seen.append((marks.own, Moment(after.wall_ms - age_ms, after.boot_ms - age_ms)))
        elif marks.own > self._marks_seen[-1][0]:
            self._marks_seen.append((marks.own, after))
        while len(self._marks_seen) > 1 and self._marks_seen[1][1].is_surely_older_than(RELEASE_AGE_MS, now):
            self._marks_seen.popleft()
        epoch, since = self._marks_seen[0]
        return epoch if since.is_surely_older_than(RELEASE_AGE_MS, now) else None

    def _young(self, manifests: Mapping[Epoch, Sequence[NamedManifest]], now: Moment) -> set[Epoch]:
        """The epochs with a manifest whose attempt may still be uploading.

        By the time of the store; and of what came while this process looked on by its boot clock, too, since the wall
        clock may be set forward.
        """
        before = self._came_ms
        unknown_ms = now.boot_ms if before is not None else now.boot_ms - RELEASE_AGE_MS - 1
        self._came_ms = {each: (before or {}).get(each, unknown_ms) for named in manifests.values() for each in named}
        came_ms = self._came_ms
        return {
            epoch
            for epoch, named in manifests.items()
            if not all(each.is_old(now.wall_ms) and now.boot_ms - came_ms[each] > RELEASE_AGE_MS for each in named)
        }

    async def _read_chain(self, epochs: Sequence[Epoch]) -> Mapping[Epoch, Link]:
        """The links of all seals in `epochs`; one that went away since the listing was released by somebody else.

        A remembered link that the chain does not lead to is read again: it may be of a seal that this process put as a
        zombie, in the place of one that was released.
        """
        links = {epoch: self._links[epoch] for epoch in epochs if epoch in self._links}
        await self._read_links(links, [epoch for epoch in epochs if epoch not in links])
        reached = chained(links.values())
        await self._read_links(links, [epoch for epoch in links if epoch not in reached])
        # What the listing did not show was released by somebody else, or sealed since.
        newest = max(epochs, default=-1)
        self._links = {epoch: link for epoch, link in self._links.items() if epoch > newest} | links
        return links

    async def _read_links(self, links: dict[Epoch, Link], epochs: Sequence[Epoch]) -> None:
        for epoch, stored in zip(epochs, await self._read_seals(epochs), strict=True):
            links.pop(epoch, None)
            self._links.pop(epoch, None)
            if stored is not None:
                links[epoch] = stored.link

    async def _read_seals(self, epochs: Sequence[Epoch]) -> list[StoredSeal | None]:
        return await in_parallel(lambda epoch: find_seal(self._store, self._query, epoch), epochs)

    async def _seals_of(self, epochs: Sequence[Epoch], links: Mapping[Epoch, Link]) -> Mapping[Epoch, Seal]:
        """The seals whose links are `links`: from memory where they are new, read again where they are not."""
        known = {epoch: self._unswept[epoch] for epoch in epochs if epoch in self._unswept}
        unknown = [epoch for epoch in epochs if epoch not in known]
        found = {**known, **dict(zip(unknown, await self._read_seals(unknown), strict=True))}
        seals: dict[Epoch, Seal] = {}
        for epoch, stored in found.items():
            if stored is not None and stored.digest == links[epoch].digest:
                seals[epoch] = stored.seal
            else:
                # Another seal is in the place of the one that was remembered: the next step reads what it is.
                self._links.pop(epoch, None)
                self._unswept.pop(epoch, None)
        return seals

    async def _lost(
        self,
        seals: Mapping[Epoch, Seal | None],
        standings: Mapping[Epoch, Standing],
        manifests: Mapping[Epoch, Sequence[NamedManifest]],
    ) -> NamedFiles:
        """The files of the attempts that have lost in the epochs of `seals`.

        In a zombie's epoch a winner's manifest may have come a second time, long after its release, and in one that
        another sink has run too the seal decides nothing: the log is asked.
        """
        by_seal = [
            named
            for epoch, seal in seals.items()
            if standings[epoch] not in _ASKED_OF_THE_LOG
            for named in losers(standings[epoch], seal, manifests[epoch])
        ]
        stray = [named for epoch in seals if standings[epoch] in _ASKED_OF_THE_LOG for named in manifests[epoch]]
        lost = await read_files(self._store, by_seal)
        strays = await without_the_tables(self._format, await read_files(self._store, stray))
        return lost.together_with(strays)


def _is_long_held(epoch: Epoch, presence: EpochPresence, now: Moment) -> bool:
    """Whether the version that holds an epoch is so old that nobody writes over it any more."""
    since_ms = presence.held.get(epoch)
    return since_ms is not None and now.wall_ms - since_ms > RELEASE_AGE_MS


def problem_of(clean_up: QueryCleanUp) -> Iterator[str]:
    """What cannot be told of a query, if there is anything."""
    if clean_up.unknown:
        yield (
            f"epochs {list(clean_up.unknown)[:20]} of query {clean_up.query} are done by the mark, but the log names "
            "no file of them, and does not go back far enough to say why; their files are kept; save them with "
            "'lakecommit recover --export', look for their rows in the table, and append what is missing"
        )
