"""`lakecommit clean TABLE`: deletes what attempts that lost have left, and state that is needed no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import click
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult

from lakecommit.cli.arguments import UNITS_MS, age_ms, json_option, run, store_option
from lakecommit.cli.hints import Hint, hint
from lakecommit.cli.output import Indented, second, show, size, table, text
from lakecommit.cli.progress import progress_bar
from lakecommit.cli.tables import new_id, table_at
from lakecommit.clock import Clock, SystemClock
from lakecommit.concurrency.parallel import in_parallel
from lakecommit.errors import LakecommitError
from lakecommit.formats.base import TableState, marks_of
from lakecommit.formats.registry import no_table
from lakecommit.model import RELEASE_AGE_MS, QueryId, is_batch
from lakecommit.observing.status import query_status
from lakecommit.releasing.batches import DeadBatch
from lakecommit.releasing.objects import NamedFiles
from lakecommit.releasing.query import Cleaned, QueryCleanUp, problem_of
from lakecommit.releasing.whole_table import DEAD_AFTER_MS, Survey, TableCleaner
from lakecommit.state import layout
from lakecommit.state.stored import stored_queries
from lakecommit.storage.base import Store
from lakecommit.storage.location import open_store

RELEASE_MINUTES = RELEASE_AGE_MS // 60_000


@dataclass(frozen=True, slots=True)
class Stays:
    """Why something is left, and the command that would change that, where there is one."""

    reason: str
    hint: Hint | None = None

    @property
    def sentence(self) -> str:
        return self.reason if self.hint is None else f"{self.reason}; {self.hint.why}: {self.hint.command}"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield text(self.reason)
        if self.hint is not None:
            yield self.hint


@dataclass(frozen=True, slots=True)
class QueryFigures:
    """What goes behind a query, or has gone. `seals` is the number of epochs that are released.

    `kind` is `query` or `batch`. `stays` says what is left and when that can go. `problems` are what cannot be judged.
    """

    id: QueryId
    kind: str
    files: int = 0
    size_bytes: int = 0
    manifests: int = 0
    seals: int = 0
    dead: bool = False
    unconfirmed: int = 0
    stays: tuple[Stays, ...] = ()
    problems: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.files or self.manifests or self.seals)


@dataclass(frozen=True, slots=True)
class CleanOutput:
    """`applied` says whether it was deleted; otherwise it is what would be."""

    location: str
    older_than_ms: int
    applied: bool
    queries: tuple[QueryFigures, ...]
    halves: int = 0
    """Files that killed writers left half written in the log's directory on local disk."""

    @property
    def well(self) -> bool:
        return not any(query.problems or query.unconfirmed for query in self.queries)

    def data(self) -> dict[str, Any]:
        return {
            "location": self.location,
            "olderThanMs": self.older_than_ms,
            "applied": self.applied,
            "queries": [_query_data(query) for query in self.queries],
            "halfWrittenVersions": self.halves,
        }

    def render(self) -> RenderableType:
        parts: list[RenderableType] = [text(self.location, "bold"), text("")]
        found = [query for query in self.queries if query]
        if found:
            verb = "deleted" if self.applied else "would be deleted"
            columns = ("query", "", "#lost files", "#bytes", "#manifests", "#released epochs")
            parts += [text(f"{verb}:"), table(columns, [_row(query) for query in found])]
        if self.halves:
            verb = "were deleted" if self.applied else "would be deleted"
            parts.append(text(f"{self.halves} half-written versions, which killed writers left in the log, {verb}"))
        if not (found or self.halves):
            parts.append(text("there is nothing to clean up"))
        kept = [query for query in self.queries if query.stays]
        if kept:
            parts += [text(""), text("stays:")]
        for query in kept:
            parts += [text(query.id), *(Indented(reason) for reason in query.stays)]
        problems: list[RenderableType] = [
            text(f"{query.id}: {problem}", "red") for query in self.queries for problem in query.problems
        ]
        unconfirmed = sum(query.unconfirmed for query in self.queries)
        if unconfirmed:
            problems.append(text(f"{unconfirmed} deletions are not confirmed by the store", "red"))
            problems.append(self._again("run it again"))
        parts += [text(""), *problems] if problems else []
        if (found or self.halves) and not self.applied:
            parts += [text(""), self._again("nothing was changed; to delete this")]
        return Group(*parts)

    def _again(self, why: str) -> Hint:
        return hint(why, "clean", self.location, "--older-than", _age(self.older_than_ms), "--apply")


async def clean(
    store: Store, clock: Clock, *, older_than_ms: int = DEAD_AFTER_MS, apply: bool = False, as_json: bool = False
) -> CleanOutput:
    """Looks behind every query, and deletes right after that where `apply` is set."""
    table_format = await table_at(store, clock)
    state = await table_format.open()
    if state is None:
        then = ", so nothing is known to have lost; nothing was changed"
        raise no_table(table_format.name, store.location, then)
    cleaner = TableCleaner(store, table_format, clock=clock, new_id=new_id, dead_after_ms=older_than_ms)
    total = len([query async for query in stored_queries(store)])
    done: list[QueryFigures] = []
    with progress_bar("cleaning" if apply else "looking", total, as_json=as_json) as step:
        async for found in cleaner.survey():
            figures = await _figures(store, state, found, older_than_ms, clock.wall_ms())
            done.append(await _applied(cleaner, found, figures) if apply and found.found else figures)
            step()
    halves = table_format.sweep(DEAD_AFTER_MS, apply=apply)
    return CleanOutput(store.location, older_than_ms, apply, tuple(done), halves)


def _age_ms(_: click.Context, __: click.Parameter, given: str) -> int:
    found_ms = age_ms(given)
    if found_ms < RELEASE_AGE_MS:
        raise click.BadParameter(
            f"{given} is too short, write {RELEASE_MINUTES}m or more: an attempt may upload for "
            f"{RELEASE_MINUTES // 2} minutes, and what is not twice as old may still be in use"
        )
    return found_ms


@click.command("clean")
@click.argument("location", metavar="TABLE")
@click.option(
    "--older-than",
    "older_than_ms",
    callback=_age_ms,
    default="24h",
    show_default=True,
    metavar="AGE",
    help=f"Take a batch write that did nothing for this long for dead: 90m, 24h, 7d; at least {RELEASE_MINUTES}m.",
)
@click.option("--apply", is_flag=True, help="Delete it. Without this, what would be deleted is shown.")
@store_option
@json_option
def command(location: str, older_than_ms: int, apply: bool, store_options: Mapping[str, str], as_json: bool) -> None:
    """Delete files of attempts that lost, and state that is needed no more, below TABLE.

    Shows what there is and deletes it with --apply. Files that the table names, or that may still be committed, are
    never deleted. A batch write that is taken for dead and only slept fails when it wakes up.
    """
    store = open_store(location, store_options)
    output = run(clean(store, SystemClock(), older_than_ms=older_than_ms, apply=apply, as_json=as_json))
    show(output, as_json=as_json)
    if not output.well:
        raise SystemExit(1)


async def _figures(store: Store, state: TableState, clean_up: Survey, older_than_ms: int, now_ms: int) -> QueryFigures:
    query = clean_up.query
    figures = QueryFigures(query, "batch" if is_batch(query) else "query")
    if clean_up.problem is not None:
        return replace(figures, problems=(clean_up.problem,))
    age, found = _age(older_than_ms), clean_up.found
    if found is None:
        until = second(now_ms + older_than_ms)
        reason = f"all of it: this batch write has written in the last {age}; at the latest it can go after {until}"
        return replace(figures, stays=(Stays(reason),))
    unknown = list(problem_of(found)) if isinstance(found, QueryCleanUp) else []
    problems = (*(f"{problem}; it is kept" for problem in found.lost.damaged.values()), *unknown)
    figures = replace(figures, problems=problems)
    files, size_bytes = await _present(store, found.lost)
    figures = replace(figures, files=files, size_bytes=size_bytes)
    match found:
        case DeadBatch():
            manifests = len([named for named in found.manifests if named not in found.lost.damaged])
            return replace(figures, manifests=manifests, dead=not found.committed)
        case QueryCleanUp():
            stays = await _stays(store, state, found, now_ms)
            return replace(figures, manifests=len(found.manifests), seals=len(found.released), stays=stays)


async def _present(store: Store, lost: NamedFiles) -> tuple[int, int]:
    """How many of the lost files are there, and their bytes. Most manifests outlive the files that they name."""
    sizes = await in_parallel(store.size, lost.paths)
    there = [length for length in sizes if length is not None]
    return len(there), sum(there)


async def _stays(store: Store, state: TableState, found: QueryCleanUp, now_ms: int) -> tuple[Stays, ...]:
    """What of a query is left after the clean-up, and when it can go."""
    status = await query_status(store, found.query, marks_of(state, found.query))
    reasons = []
    recover = ("recover", store.location, "--query", found.query)
    if status.passed:
        reason = f"{len(status.passed)} epochs that another sink went past"
        reasons.append(Stays(reason, hint("to commit them", *recover, "--apply")))
    if found.replaced:
        reason = f"{len(found.replaced)} epochs whose version another writer wrote over: the query commits them again"
        reasons.append(Stays(reason, hint("to commit them without it", *recover, "--apply")))
    if status.pending:
        reason = f"{len(status.pending)} pending epochs: the query commits them when it runs"
        reasons.append(Stays(reason, hint("to commit them without it", *recover, "--apply")))
    if status.open:
        reason = f"{len(status.open)} epochs that are being written or were broken off: the query runs them again"
        reasons.append(Stays(reason, hint("to give them up, if it is gone for good", *recover, "--discard")))
    if found.untold:
        reasons.append(
            Stays(
                f"{found.untold} epochs that a listener was not told of: the query tells it when it runs again; if "
                f"there is no such listener any more, delete its directory below {layout.listeners_prefix(found.query)}"
            )
        )
    if not reasons and not found.quiet:
        until = second(now_ms + RELEASE_AGE_MS)
        reason = f"state whose snapshot or manifests are younger than {RELEASE_MINUTES} minutes: clean after {until}"
        reasons.append(Stays(reason))
    elif not reasons and found.newest_seal is not None:
        reason = f"the state of epoch {found.newest_seal}, the newest: it is the evidence of how far the query is"
        reasons.append(Stays(reason))
    return tuple(reasons)


def _age(older_than_ms: int) -> str:
    unit = "h" if older_than_ms % UNITS_MS["h"] == 0 else "m"
    return f"{older_than_ms // UNITS_MS[unit]}{unit}"


async def _applied(cleaner: TableCleaner, clean_up: Survey, figures: QueryFigures) -> QueryFigures:
    """The figures of what is deleted. One query's failure is told, and the others go on."""
    try:
        cleaned: Cleaned = await cleaner.apply(clean_up)
    except LakecommitError as error:
        nothing = replace(figures, files=0, size_bytes=0, manifests=0, seals=0)
        return replace(nothing, problems=(*figures.problems, str(error)))
    return replace(
        figures,
        files=min(figures.files, cleaned.files),
        manifests=cleaned.manifests,
        seals=cleaned.seals,
        unconfirmed=cleaned.unconfirmed,
    )


def _row(query: QueryFigures) -> tuple[object, ...]:
    kind = query.kind if query.kind == "query" else "dead batch write" if query.dead else "committed batch write"
    return (query.id, kind, query.files, size(query.size_bytes), query.manifests, query.seals)


def _query_data(query: QueryFigures) -> dict[str, Any]:
    return {
        "query": query.id,
        "kind": query.kind,
        "dead": query.dead,
        "files": query.files,
        "sizeBytes": query.size_bytes,
        "manifests": query.manifests,
        "releasedEpochs": query.seals,
        "unconfirmed": query.unconfirmed,
        "stays": [each.sentence for each in query.stays],
        "problems": list(query.problems),
    }
