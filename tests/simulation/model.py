"""The judge: a small model of the table and the writers' state that sees every effect in the moment it happens.

It knows what each epoch and each batch write has to add, because the simulated Spark told it when it planned them, and
it reads everything else from the bytes that were stored. It shares no decision with lakecommit. Numbers in comments are
those of the design's invariants.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from .batch_directory_log import BatchDirectoryLog
from .directory_log import DirectoryLog
from .hearing import Hearing
from .lease_model import LEASES, VACUUM, LeaseModel
from .log_model import LogModel
from .names import ManifestRecord, Owner, SealRecord, owner_of_data, read_manifest, read_seal, rows_of, seal_epoch
from .process import Process
from .profile import MINUTE_MS
from .runs import Load
from .upkeep_model import UpkeepModel
from .vacuum_model import VacuumModel
from .versions_model import VersionsModel
from .violations import Violation
from .watermarks import Watermarks

if TYPE_CHECKING:
    from .world import World

DEADLINE_MS = 10 * MINUTE_MS
LAST_CHECKPOINT = "_delta_log/_last_checkpoint"
STATE = "_lakecommit/"


class Model:
    def __init__(self, world: World) -> None:
        self._world = world
        self.log = self._log_of(world)
        self.upkeep = UpkeepModel(world)
        self.versions = VersionsModel(world)
        self.leases = LeaseModel(self, world)
        self.vacuums = VacuumModel(self, world)
        self.manifests: dict[str, ManifestRecord] = {}
        # Path of a data file -> the path of the manifest that names it, for manifests that are there.
        self.named: dict[str, str] = {}
        self.queries_of: dict[str, str] = {}
        # Seals that are stored, and for each epoch the one that counts, whether it is still stored or not.
        self.stored_seals: dict[tuple[str, int], SealRecord] = {}
        self.seals: dict[tuple[str, int], SealRecord] = {}
        self.epochs: dict[tuple[str, int], tuple[str, frozenset[int]]] = {}
        self.batches: dict[str, frozenset[int]] = {}
        self.commits_begun: set[str] = set()
        self.watermarks = Watermarks(world)
        self.hearing = Hearing(world)
        # What a vacuum of somebody else took, with what was in it.
        self.vacuumed: dict[str, bytes] = {}
        # By process, the epochs whose seals it has created.
        self.sealed_by: dict[str, set[tuple[str, int]]] = {}

    def _log_of(self, world: World) -> LogModel:
        if world.directory is None:
            return LogModel(self, world)
        return BatchDirectoryLog(self, world) if world.directory.batches else DirectoryLog(self, world)

    # What the simulated Spark says it will do.

    def expect_epoch(self, query: str, epoch: int, fingerprint: str, rows: range) -> None:
        self.epochs[query, epoch] = (fingerprint, frozenset(rows))

    def expect_batch(self, query: str, rows: list[int]) -> None:
        self.batches[query] = frozenset(rows)

    def batch_commit_begins(self, query: str) -> None:
        self.commits_begun.add(query)

    # What was answered.

    def epoch_committed(self, query: str, epoch: int, version: int | None, pending: bool) -> None:
        """`commit_epoch` returned: the epoch is sealed, once, and in the table, without rows or said to be pending."""
        mark = self.log.marks.get(query, -1)
        if mark >= epoch or self.log.is_made_anew:
            if version is not None and self.log.mark_at(query, version) < epoch:
                raise Violation(f"epoch {epoch} of {query} is said to be in version {version}, and is not")
            return
        if (query, epoch) not in self.seals:
            raise Violation(f"epoch {epoch} of {query} is said to be sealed and has no seal")
        if (query, epoch) in self.log.once_committed:
            # Its version was written over since.
            return
        if pending and version is None:
            return
        left = [each for each in range(mark + 1, epoch + 1) if (query, each) not in self.log.once_committed]
        if version is not None or any(self.epochs[query, each][1] for each in left):
            raise Violation(f"epoch {epoch} of {query} is said to be committed, but the mark is at {mark}")

    def spark_logs(self, query: str, epoch: int) -> None:
        """Spark's commit log is about to have the epoch, so that it is never run again."""
        if (query, epoch) not in self.seals and not self.log.is_anothers(epoch) and not self.log.is_made_anew:
            raise Violation(f"epoch {epoch} of {query} is logged by Spark, and nobody has sealed it")

    def drained(self, process: Process) -> None:
        """`drain` returned: nothing that the process has sealed is pending."""
        for query in () if self.log.is_made_anew else process.runs:
            self.all_committed(process, query, "drained")

    def all_committed(self, process: Process, query: str, when: str) -> None:
        mark = self.log.marks.get(query, -1)
        newest = max((epoch for name, epoch in self.sealed_by.get(process.name, ()) if name == query), default=-1)
        epochs = [epoch for epoch in range(mark + 1, newest + 1) if (query, epoch) not in self.log.once_committed]
        pending = [epoch for epoch in epochs if self.seals[query, epoch].changes]
        if pending:
            raise Violation(f"{process.name} has sealed epochs {pending} of {query}, said {when} to be committed")

    def told(self, query: str, epoch: int, version: int) -> None:
        """A listener is told of a snapshot."""
        if self.log.mark_in(query, version) != epoch:
            raise Violation(f"version {version} is said to bring {query} to epoch {epoch}")

    def load(self, query: str) -> Load:
        """What is sealed and not committed."""
        first, epochs = self.log.marks.get(query, -1) + 1, []
        while (query, first + len(epochs)) in self.seals:
            epochs.append(self.seals[query, first + len(epochs)])
        return Load.of(each for each in epochs if (query, each.epoch) not in self.log.once_committed)

    def has_lost(self, query: str) -> bool:
        """Whether epochs were in a version that was written over, and are not in the table again."""
        return any(name == query for name, _ in self.log.lost)

    def is_pending(self, query: str, last: int) -> bool:
        """Whether an epoch with rows up to `last` is sealed and not committed."""
        epochs = range(self.log.marks.get(query, -1) + 1, last + 1)
        return any(self.seals[query, epoch].changes for epoch in epochs if (query, epoch) in self.seals)

    def newest_pending(self, query: str) -> int | None:
        mark = self.log.marks.get(query, -1)
        return max((epoch for name, epoch in self.seals if name == query and epoch > mark), default=None)

    def backlogs_left(self, query: str, epoch: int) -> list[dict[str, int]]:
        """What the newest seal says of the backlog, for a run that begins with `epoch`: that one may be sealed."""
        seals = [self.seals[query, each] for each in (epoch - 1, epoch) if (query, each) in self.seals]
        return [json.loads(seal.backlog) if seal.backlog else {} for seal in seals] or [{}]

    def batch_committed(self, query: str) -> None:
        self.log.batches.answered(query)

    # What happens in the store.

    def begins_put(self, path: str, who: Process) -> None:
        """A process is about to send a PUT."""
        if path.startswith((STATE, self._world.log_directory)) or self.log.is_made_anew:
            return
        manifest = self.manifests.get(self.named.get(path, ""))
        if manifest is None:
            # 1. named before written
            raise Violation(f"{who.name} begins to upload a file that no durable manifest names: {path}")
        if self._world.loop.now > manifest.durable_ms + DEADLINE_MS:
            # 7. state outlives uploads
            raise Violation(f"{who.name} begins an upload more than ten minutes after its manifest: {path}")

    def written(self, path: str, body: bytes, before: bytes | None, who: Process | None, *, late: bool = False) -> None:
        if before is not None and before != body and path != LAST_CHECKPOINT:
            # 3. sealed once; and nothing else is ever written anew, either
            raise Violation(f"{path} is overwritten with something else")
        if isinstance(self.log, DirectoryLog) and path.startswith(self._world.log_directory):
            if before is None:
                self.log.written(path, body, who, late=late)
        elif self.log.is_made_anew:
            # What is left of the old table's writers is the new one's to clean up.
            return
        elif path.startswith(self._world.log_directory):
            number = self._world.format.version_at(path)
            if before is None and number is not None:
                self.log.version_created(number, body, None if late else who)
            elif number is None:
                self.upkeep.written(path, body, who)
        elif not path.startswith(STATE):
            self.vacuums.file_written(path)
            if who is not None:
                self.queries_of.setdefault(path, self._query_naming(path))
        elif "/seals/" in path:
            if before is None:
                self._sealed(path, body, who, late=late)
        elif "/listeners/" in path:
            if before is None:
                self.hearing.place_written(path, body)
        elif "/writers/" in path and before is None:
            self._manifest_written(path, body)
        elif path.startswith(LEASES) or (path.startswith(VACUUM) and before is None):
            self.leases.written(path, who, late=late)
            self.vacuums.written(path)

    def deletes(self, path: str, who: Process | None) -> None:
        """Before an object is deleted: what may go, and when."""
        if isinstance(self.log, DirectoryLog) and path.startswith(self._world.log_directory):
            self.log.deleted(path, who)
        elif self.log.is_made_anew:
            return
        elif path.startswith(self._world.log_directory):
            self.upkeep.disturbances += 1
            if who is not None:
                self.upkeep.deletes(path, who)
        elif not path.startswith(STATE):
            self._data_deleted(path, who)
        elif "/seals/" in path:
            self._seal_deleted(path, who)
        elif "/writers/" in path:
            self._manifest_deleted(path, who)
        elif "/listeners/" in path:
            self.hearing.place_deleted(path)
        elif path.startswith((LEASES, VACUUM)):
            self.leases.deleted(path, who)

    # The parts.

    def _query_naming(self, path: str) -> str:
        manifest = self.manifests.get(self.named.get(path, ""))
        return manifest.owner.query if manifest is not None else self.queries_of.get(path, "")

    def _manifest_written(self, path: str, body: bytes) -> None:
        record = read_manifest(path, body, self._world.loop.now)
        self.manifests[path] = record
        for file in record.files:
            self.named[file] = path
            self.queries_of[file] = record.owner.query
            if owner_of_data(file, record.owner.query) != record.owner:
                raise Violation(f"{path} names a file of another attempt: {file}")

    def _sealed(self, path: str, body: bytes, who: Process | None, *, late: bool) -> None:
        seal = read_seal(path, body)
        key = (seal.query, seal.epoch)
        self._world.count("epochs sealed")
        self.stored_seals[key] = seal
        seal.counts = self.log.is_open(seal.query, seal.epoch)
        if not seal.counts:
            self._world.count("seals created again after a release")
            return
        if key in self.seals:
            raise Violation(f"epoch {seal.epoch} of {seal.query} is sealed a second time while it is pending")
        self.seals[key] = seal
        if not self.log.leads_to_the_one_before(seal):
            raise Violation(f"the seal of epoch {seal.epoch} of {seal.query} does not lead to the one before")
        fingerprint, _ = self.epochs[key]
        if seal.fingerprint is not None and seal.fingerprint != fingerprint:
            raise Violation(
                f"epoch {seal.epoch} of {seal.query} is sealed with fingerprint {seal.fingerprint}, not {fingerprint}"
            )
        if seal.replaces != self.log.replacing.is_due(seal.query):
            raise Violation(f"the seal of epoch {seal.epoch} of {seal.query} says {seal.replaces} of replacing")
        seal.files = self.files_of(seal)
        run = None if who is None else who.runs.get(seal.query)
        self._check_totals(seal)
        self.watermarks.sealed(seal, 0 if run is None else run.delay_us)
        if late or who is None:
            return
        self.sealed_by.setdefault(who.name, set()).add(key)
        if run is not None:
            run.sealed(seal, self.load(seal.query))

    def _check_totals(self, seal: SealRecord) -> None:
        bodies = [self.body_of(file) for file in seal.files]
        seal.size_bytes = sum(map(len, bodies))
        found = (len(bodies), sum(len(rows_of(body)) for body in bodies), seal.size_bytes)
        if seal.totals != found:
            raise Violation(
                f"the seal of epoch {seal.epoch} speaks of {seal.totals} files, rows and bytes, not {found}"
            )

    def files_of(self, seal: SealRecord) -> tuple[str, ...]:
        """2. complete before reported: all that the winners named is stored when the epoch is sealed, and while it
        is pending."""
        missing = self.missing_manifest(seal)
        if missing is not None:
            raise Violation(f"the seal of epoch {seal.epoch} names a manifest that is not there: {missing}")
        files: list[str] = []
        for task, (_, count, digest) in seal.winners.items():
            bodies = []
            for path in seal.manifests_of(task):
                bodies.append(self.manifests[path].body)
                files.extend(self.manifests[path].files)
            if count and hashlib.sha256(b"".join(bodies)).digest() != digest:
                raise Violation(f"the seal of epoch {seal.epoch} has another digest of the manifests of task {task}")
        for file in files:
            if not any(file in each for each in (self._world.objects.bodies, self.vacuumed, self.vacuums.taken)):
                raise Violation(f"the seal of epoch {seal.epoch} stands for a file that is not there: {file}")
        return tuple(files)

    def body_of(self, file: str) -> bytes:
        stored = self._world.objects.bodies
        if file in stored:
            return stored[file][0]
        return self.vacuumed[file] if file in self.vacuumed else self.vacuums.taken[file]

    def is_damaged(self, query: str, epoch: int) -> bool:
        """Whether a vacuum has taken files of an epoch that is sealed."""
        seal = self.seals.get((query, epoch))
        return seal is not None and any(file in self.vacuumed for file in seal.files)

    def damaged(self, query: str) -> list[int]:
        """Epochs that are pending and cannot be committed."""
        mark = self.log.marks.get(query, -1)
        return [epoch for name, epoch in self.seals if name == query and epoch > mark and self.is_damaged(query, epoch)]

    def missing_manifest(self, seal: SealRecord) -> str | None:
        """One that the seal names and that is not there, if there is such a one."""
        paths = (path for task in seal.winners for path in seal.manifests_of(task))
        return next((path for path in paths if path not in self.manifests), None)

    def _data_deleted(self, path: str, who: Process | None) -> None:
        if who is not None and who.vacuum is not None:
            self.vacuums.deletes(path, who)
            return
        if isinstance(self.log, BatchDirectoryLog) and who is not None and self.log.judges_file(path, who):
            self.log.file_deleted(path, who)
            return
        if path in self.log.ever_added:
            # 6. only losers are deleted
            raise Violation(f"a file that the log names is deleted: {path}")
        if who is None:
            # Not ours to judge, as long as no version names it.
            self.vacuumed[path] = self._world.objects.bodies[path][0]
            return
        query = self.queries_of.get(path)
        if query is None:
            raise Violation(f"a file is deleted that no manifest ever named: {path}")
        owner = owner_of_data(path, query)
        seal = self.seals.get((owner.query, owner.epoch))
        pending = self.log.is_open(owner.query, owner.epoch)
        if seal is not None and (pending or (owner.query, owner.epoch) in self.log.lost) and seal.names(owner):
            raise Violation(f"a file of a pending epoch is deleted: {path}")
        if who is not None and who.attempt == owner.attempt:
            self._world.count("files that their own attempt took back")
            return
        if not self._has_lost(owner, seal, pending):
            raise Violation(f"a file is deleted though nothing says that its attempt has lost: {path}")
        self._world.count("losers' files deleted")

    def _has_lost(self, owner: Owner, seal: SealRecord | None, pending: bool) -> bool:
        """Whether the attempt's files can never be committed."""
        if owner.query in self.batches:
            known = owner.query in self.log.batches.written or owner.query in self.log.batches.fenced
            return known or owner.query not in self.commits_begun
        if pending:
            return seal is not None and (owner.query, owner.epoch) in self.stored_seals
        return True

    def _manifest_deleted(self, path: str, who: Process | None) -> None:
        record = self.manifests.pop(path)
        for file in record.files:
            self.named.pop(file, None)
        owner, now = record.owner, self._world.loop.now
        if owner.query in self.batches:
            return
        if self.log.is_anothers(owner.epoch) and (owner.query, owner.epoch) not in self.seals:
            # Nobody will seal it any more.
            if now < record.durable_ms + 2 * DEADLINE_MS:
                raise Violation(f"a manifest is deleted within twice its deadline: {path}")
            return
        # 9. released when covered
        version_ms, untold = self.log.epoch_done_ms(owner.query, owner.epoch), self._is_untold(owner.query, owner.epoch)
        if version_ms is None and not untold:
            raise Violation(f"a manifest of an epoch that is in no snapshot is deleted: {path}")
        if version_ms is not None and now < version_ms + 2 * DEADLINE_MS:
            raise Violation(f"a manifest is deleted within twice the deadline of its epoch's snapshot: {path}")
        if not self.log.is_covered(owner.query, owner.epoch):
            raise Violation(f"a manifest is deleted although the next epoch has not arrived: {path}")
        seal = self.seals.get((owner.query, owner.epoch))
        if seal is not None and seal.names(owner):
            self.hearing.released(who, owner.query, owner.epoch)

    def _is_untold(self, query: str, epoch: int) -> bool:
        untold = self.log.is_untold(query, epoch)
        self._world.count("releases of lost epochs that the log cannot tell of", int(untold))
        return untold

    def _seal_deleted(self, path: str, who: Process | None) -> None:
        query, epoch = seal_epoch(path)
        seal = self.stored_seals.pop((query, epoch))
        newest = max((each for name, each in self.stored_seals if name == query), default=-1)
        if epoch > newest:
            raise Violation(f"the newest seal of {query} is deleted: {path}")
        if self.log.epoch_done_ms(query, epoch) is None and not self._is_untold(query, epoch):
            raise Violation(f"the seal of an epoch that is in no snapshot is deleted: {path}")
        named = [
            record.owner
            for record in self.manifests.values()
            if (record.owner.query, record.owner.epoch) == (query, epoch)
        ]
        # 6. the seal outlives every manifest of its epoch, above all the winners'
        if seal.counts and any(seal.names(owner) for owner in named):
            raise Violation(f"a seal is deleted before the manifests of its winners: {path}")
        if seal.counts:
            self.hearing.released(who, query, epoch)
