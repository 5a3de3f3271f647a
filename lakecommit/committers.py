"""All committers of a process, one per table, behind one function that answers requests.

The driver's service and the inline fall-back run exactly this.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lakecommit.clock import Clock, SystemClock
from lakecommit.committer import EMPTY_EPOCHS_PER_SNAPSHOT
from lakecommit.drafts import TableSettings, Txn
from lakecommit.errors import ContradictoryState
from lakecommit.formats.delta import DeltaFormat
from lakecommit.model import CommitUser, Epoch, Report
from lakecommit.options import Options, parse_options
from lakecommit.state.codec import decode_report
from lakecommit.storage.base import Store
from lakecommit.storage.location import open_store
from lakecommit.table_committer import TableCommitter
from lakecommit.wire import Answer, Request, Verb

_TableKey = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Facts:
    """What the Spark session says about a request; nothing, where the committer runs inline.

    `defaults` are options that it sets with `spark.lakecommit.<option>`, `queries` those that run in the driver, and
    `offsets` the fingerprint of what the epoch was planned with, None where it cannot be known.
    """

    defaults: Mapping[str, str] = field(default_factory=dict, repr=False)
    queries: Sequence[CommitUser] = ()
    offsets: str | None = None


class Committers:
    """Answers requests; keeps one committer per table and set of store options."""

    def __init__(
        self,
        *,
        empty_epochs: int = EMPTY_EPOCHS_PER_SNAPSHOT,
        clock: Clock | None = None,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
        random_fraction: Callable[[], float] = random.random,
        open_at: Callable[..., Store] = open_store,
    ) -> None:
        self._empty_epochs = empty_epochs
        self._clock = clock or SystemClock()
        self._new_id = new_id
        self._random = random_fraction
        self._open_at = open_at
        self._tables: dict[_TableKey, TableCommitter] = {}
        self._known: dict[_TableKey, TableCommitter] = {}

    async def answer(self, request: Request, facts: Facts) -> Answer:
        """Does what `request` asks. Raises what goes wrong; nothing of it is remembered."""
        options = parse_options(request.options, streaming=request.streaming, defaults=facts.defaults)
        committer = self._committer(options)
        settings = TableSettings(
            options.partition_by, options.table_properties, options.user_metadata, options.accept_table_id
        )
        txn = None if options.txn_app_id is None else Txn(options.txn_app_id, options.txn_version or 0)
        match request.verb:
            case Verb.PLAN:
                queries = facts.queries if request.streaming else ()
                planned = await committer.plan(
                    request.schema, settings, queries=queries, afresh=not request.streaming, txn=txn
                )
                done = {str(user): int(epoch) for user, epoch in planned.done.items()}
                return Answer(plan=planned.plan.to_json(), done=done, skip=planned.skip, defaults=facts.defaults)
            case Verb.COMMIT_EPOCH:
                reports = _reports(request)
                version = await committer.commit_epoch(
                    _query_of(reports, request.epoch),
                    Epoch(request.epoch),
                    reports,
                    schema=request.schema,
                    settings=settings,
                    offsets=facts.offsets,
                )
                return Answer(version=version)
            case Verb.COMMIT_BATCH:
                version = await committer.commit_batch(
                    CommitUser(request.user), _reports(request), schema=request.schema, settings=settings, txn=txn
                )
                return Answer(version=version)
            case Verb.ABORT_BATCH:
                await committer.abort_batch(CommitUser(request.user), _reports(request))
                return Answer()

    async def tidy(self) -> None:
        """One step of cleaning up behind the writers of all tables. Never fails."""
        for committer in list(self._tables.values()):
            await committer.tidy()

    def begin_run(self, user: CommitUser) -> None:
        """A run of a query begins or has ended: what was remembered of it is read afresh. Never waits."""
        for committer in list(self._tables.values()):
            committer.begin_run(user)

    def _committer(self, options: Options) -> TableCommitter:
        """The table's committer; two spellings of one location share it."""
        store_options = tuple(sorted(options.store_options.items()))
        asked = (options.path, store_options)
        if asked not in self._known:
            store = self._open_at(options.path, options.store_options, clock=self._clock)
            key = (store.location, store_options)
            if key not in self._tables:
                table_format = DeltaFormat(store, clock=self._clock, new_id=self._new_id, random=self._random)
                self._tables[key] = TableCommitter(
                    store,
                    table_format,
                    clock=self._clock,
                    new_id=self._new_id,
                    random=self._random,
                    empty_epochs=self._empty_epochs,
                )
            self._known[asked] = self._tables[key]
        return self._known[asked]


def _reports(request: Request) -> list[Report | None]:
    return [decode_report(data) if data else None for data in request.reports]


def _query_of(reports: Sequence[Report | None], epoch: int) -> CommitUser:
    """The query that an epoch's reports are of: a commit worker knows it only from them."""
    users = {report.attempt.user for report in reports if report is not None}
    if len(users) != 1:
        raise ContradictoryState(
            f"epoch {epoch} has {len(reports)} reports of {len(users)} queries: nothing was sealed; "
            "Trigger.Continuous is not supported, use a micro-batch trigger"
        )
    return users.pop()
