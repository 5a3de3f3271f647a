"""How a query is shown, once and while it is watched: a verdict, then what is worth knowing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from lakecommit.cli.output import Indented, duration, event_time, second, size, table, text
from lakecommit.cli.verbs.status.health import Health, State
from lakecommit.model import is_batch
from lakecommit.observing.status import QueryStatus

PROBLEMS_SHOWN = 5
# What needs somebody has another shape, too: not everybody sees colours, and a log has none.
_SYMBOLS = {State.QUIET: ("●", "green"), State.LEFT_OVER: ("○", ""), State.DAMAGED: ("✖", "red")}
_WELL, _NOT_WELL = ("●", "green"), ("▲", "yellow")
_RED = frozenset({State.DEAD, State.PASSED, State.DAMAGED})


def block(
    query: QueryStatus, health: Health, now_ms: int, more: Sequence[tuple[str, object]] = (), *rest: RenderableType
) -> RenderableType:
    """A query with its verdict, `more` facts about it, and `rest` below them; it fits into 80 columns."""
    symbol, colour = _SYMBOLS.get(health.state, _WELL if health.well else _NOT_WELL)
    style = "red" if health.state in _RED else colour
    head = Text.assemble((f"{symbol} ", style), *_names(query))
    parts: list[RenderableType] = [text(health.says, style if not health.well else "")]
    facts = [*_facts(query, now_ms), *more]
    if facts:
        parts.append(table(("", ""), facts))
    parts += rest
    problems = problems_of(query)
    parts += [text(problem, "red") for problem in problems[:PROBLEMS_SHOWN]]
    if len(problems) > PROBLEMS_SHOWN:
        parts.append(text(f"… and {len(problems) - PROBLEMS_SHOWN:,} more problems; --json has all", "red"))
    if health.advice is not None:
        parts.append(text(health.advice))
    return Group(head, Indented(Group(*parts, *health.hints)))


def query_data(query: QueryStatus, health: Health, now_ms: int) -> dict[str, Any]:
    load, behind = query.load, query.partitions_behind
    return {
        "query": query.id,
        "name": query.name,
        "state": health.state.value,
        "well": health.well,
        "verdict": health.says,
        "advice": health.advice,
        "commands": [each.command for each in health.hints],
        "lastSnapshotMs": query.snapshot_ms,
        "lastSealMs": query.sealed_ms,
        "mark": query.marks.mark,
        "ownMark": query.marks.own,
        "newestSeal": query.newest_seal,
        "pendingEpochs": load.epochs,
        "pendingFiles": load.files,
        "pendingRows": load.rows,
        "pendingSizeBytes": load.size_bytes,
        "lagMs": query.lag_ms(now_ms),
        "inBacklog": None if behind is None else behind > 0,
        "backlogPartitions": behind,
        "watermark": event_time(query.watermark_us),
        "watermarkUs": query.watermark_us,
    }


def problems_of(query: QueryStatus) -> list[str]:
    """What is wrong with the query's records, and with its epochs, each in one line."""
    problems = [query.problem] if query.problem else []
    return problems + [f"epoch {each.epoch}: {each.problem}" for each in query.staged if each.problem]


def _names(query: QueryStatus) -> list[tuple[str, str]]:
    """A name beside the id. Only between the two may a line be broken."""
    name = [(f"{text(query.name).plain}  ", "bold")] if query.name else []
    return [*name, (str(query.id), "" if query.name else "bold")]


def _facts(query: QueryStatus, now_ms: int) -> list[tuple[str, object]]:
    """The last snapshot and the last seal; and where they say something: what waits, marks that differ, the pace."""
    facts: list[tuple[str, object]] = []
    load, marks = query.load, query.marks
    if query.pending:
        lag = duration(query.lag_ms(now_ms))
        counted = (f"{load.epochs:,} epochs", f"{load.files:,} files", f"{load.rows:,} rows", size(load.size_bytes))
        facts.append(("waits", ", ".join(filter(None, counted)) + (f", for {lag}" if lag else "")))
    if marks.own is not None:
        facts.append(("last snapshot", f"epoch {marks.own:,}, at {second(query.snapshot_ms) or 'an unknown time'}"))
    if query.newest_seal is not None and query.newest_seal != marks.own:
        facts.append(("last seal", f"epoch {query.newest_seal:,}, at {second(query.sealed_ms) or 'an unknown time'}"))
    if marks.mark != marks.own and not is_batch(query.id):
        facts.append(("mark", f"epoch {_number(marks.mark)}; lakecommit's own is at {_number(marks.own)}"))
    if query.partitions_behind:
        plural = "s" if query.partitions_behind > 1 else ""
        facts.append(("cadence", f"in backlog, {query.partitions_behind:,} partition{plural} behind"))
    if query.watermark_us is not None:
        facts.append(("watermark", event_time(query.watermark_us, "milliseconds")))
    return facts


def _number(epoch: int | None) -> str:
    return "none" if epoch is None else f"{epoch:,}"
