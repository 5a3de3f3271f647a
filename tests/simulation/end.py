"""What must hold when the faults have stopped, everybody has run to the end and cleaning is done."""

from __future__ import annotations

from .batch import BatchWork
from .model import Model
from .spark import Query
from .violations import Violation
from .world import World


def check_end(world: World, queries: list[Query], works: list[BatchWork], foreign_rows: set[int]) -> None:
    _check_rows(world, queries, works, foreign_rows)
    for path in world.model.log.live:
        if path not in world.objects.bodies:
            raise Violation(f"a file of the table is gone: {path}")
    for query in queries:
        if not query.given_up:
            world.model.hearing.check_end(query.id)
    left = left_over(world)
    if left is not None:
        raise Violation(f"left over at the end: {left}")


def _check_rows(world: World, queries: list[Query], works: list[BatchWork], foreign_rows: set[int]) -> None:
    """Everything that had to be is in the table, once, and nothing is pending."""
    log = world.model.log
    expected = set(foreign_rows)
    for query in queries:
        if query.given_up:
            world.count("queries given up")
            continue
        if not query.finished:
            raise Violation(f"the last driver has not brought {query.id} to its end")
        expected |= query.all_rows()
        for whose, epoch in log.given_up:
            expected -= set(query.rows(epoch)) if whose == query.id else set()
        for whose, epoch in log.lost:
            # A vacuum took files of it after its version was written over, so that it can only be given up; or nobody
            # could know that it was.
            missing = world.model.is_damaged(whose, epoch) or log.is_untold(whose, epoch)
            expected -= set(query.rows(epoch)) if whose == query.id and missing else set()
        mark = log.marks.get(query.id, -1)
        # What somebody had compacted before its version was written over is in the table without a mark.
        held = {epoch for whose, epoch in log.once_committed - log.lost if whose == query.id}
        later = [epoch for epoch in range(mark + 1, query.epochs) if epoch not in held]
        pending = [epoch for epoch in later if query.rows(epoch) or log.replacing.is_due(query.id)]
        if pending:
            raise Violation(f"epochs {pending} of {query.id} are pending at the end")
    for work in works:
        _check_work(world, work)
    lost = expected - set(log.rows) - log.replacing.rows
    if lost:
        raise Violation(f"rows are missing at the end: {sorted(lost)}")


def _check_work(world: World, work: BatchWork) -> None:
    """Whatever was said to be committed is there, but for what was lost with the process that could have told."""
    log = world.model.log
    if work.txn is not None and log.mark_at(work.txn.application_id, log.version) < work.txn.version:
        raise Violation(f"batch work {work.number} is not in the table at the end")
    if not set(work.committed) <= log.rows.keys() | log.batches.lost_rows() | log.replacing.rows:
        raise Violation(f"batch work {work.number} was committed and is not in the table")


def left_over(world: World) -> str | None:
    """What is left that is neither the table's nor the newest seal of a query with its epoch's manifests.

    Of a query whose mark the table has forgotten nobody can tell what may go.
    """
    model = world.model
    for path in world.objects.bodies:
        query = model.queries_of.get(path, "")
        # Of a batch write that was lost nobody knows any more.
        forgotten = model.log.batches.lost | model.log.batches.adrift
        if path.startswith("_") or _is_unknown(model, query) or query in forgotten:
            continue
        if path not in model.log.ever_added and path not in model.log.foreign_files:
            return f"a file that the table does not name: {path}"
    newest: dict[str, int] = {}
    for query, epoch in model.stored_seals:
        newest[query] = max(epoch, newest.get(query, -1))
    for query, epoch in model.stored_seals:
        if _is_unknown(model, query):
            continue
        # Epochs after the mark have no rows at the end: the next mark would cover them.
        if epoch != newest[query] and epoch <= model.log.marks.get(query, -1):
            return f"the seal of epoch {epoch} of {query}"
    for path, manifest in model.manifests.items():
        query, epoch = manifest.owner.query, manifest.owner.epoch
        if _is_unknown(model, query):
            continue
        if query in model.batches or (epoch != newest.get(query) and epoch <= model.log.marks.get(query, -1)):
            return f"a manifest: {path}"
    return None


def _is_unknown(model: Model, query: str) -> bool:
    """Whether nobody can tell what may go of a query: its mark has expired, or went back behind what is there."""
    log = model.log
    rewound = any(name == query and epoch > log.marks.get(query, -1) for name, epoch in log.once_committed)
    return rewound or log.is_forgotten(query) or model.has_lost(query)
