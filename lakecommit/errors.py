"""Errors, named by what a handler would do about them.

Every message is lower case and reads: what is wrong, the facts, then the remedy after a semicolon or full stop.
No message may contain a credential.

Each kind has an entry in docs/when-something-is-wrong.md, and so have some of the things that a kind stands for. Where
that says more than a message can, the message ends with the command that shows it.
"""

from __future__ import annotations

from typing import ClassVar


class LakecommitError(Exception):
    """Base of everything that lakecommit raises on purpose. `entry` is the heading of what explains it."""

    entry: str = "something-else"
    # Whether the entry says more than every message of this kind.
    explained: ClassVar[bool] = False

    def __init__(self, message: str = "", *, entry: str | None = None) -> None:
        super().__init__(message)
        if entry is not None:
            self.entry = entry

    def __str__(self) -> str:
        message = super().__str__()
        # One that came from the committer, or that quotes another, ends with such a command already.
        if not self.explained or EXPLAIN in message:
            return message
        return f"{message} ({EXPLAIN}{self.entry})"


EXPLAIN = "more: lakecommit explain "


class InvalidInput(LakecommitError):
    """The caller has to change an option, a path or a schema; nothing was written."""

    entry = "invalid-input"


class SchemaMismatch(InvalidInput):
    """The data does not fit the table, by column."""

    entry = "schema-mismatch"


class ConstraintViolated(SchemaMismatch):
    """A row violates a rule of the table, such as NOT NULL or a CHECK constraint."""

    entry = "constraint-violated"


class UnsupportedTable(InvalidInput):
    """The table uses a feature that a blind append cannot honour."""

    entry = "unsupported-table"


class StoreError(LakecommitError):
    """The object store said no, or could not be reached within the bound of the retries."""

    entry = "store-failed"


class AccessDenied(StoreError):
    """Credentials are missing, wrong or expired; trying again does not help."""

    entry = "access-denied"
    explained = True


class LocalDiskFailed(LakecommitError):
    """Local disk did not take what memory has no room for; once it does, the next start goes on."""

    entry = "local-disk-failed"
    explained = True


class CorruptState(LakecommitError):
    """A durable record is missing, damaged or names something outside its own attempt."""

    entry = "damaged-state"
    explained = True


class ContradictoryState(LakecommitError):
    """Records that are intact contradict each other: a rewound checkpoint, a copied state, a recreated table."""

    entry = "contradictory-state"
    explained = True


class TableMadeAnew(ContradictoryState):
    """Another table is in the place of the one that was known: what the query has sealed says what to do about it."""

    entry = "table-made-anew"


class Overtaken(LakecommitError):
    """Somebody else has committed what this caller meant to commit."""

    entry = "overtaken"
    explained = True


class ConflictingWrite(LakecommitError):
    """Others have changed what a write would replace; nothing was committed, and it has to be run again."""

    entry = "conflicting-write"
    explained = True


class CommitFailed(LakecommitError):
    """A commit did not happen, or may not have; what was staged is kept, and it is safe to run it again."""

    entry = "commit-failed"
    explained = True


class VersionsGone(LakecommitError):
    """Versions that a reader needs are no longer in the log, or files of them no longer in the store."""

    entry = "versions-gone"
    explained = True


class LeaseLost(LakecommitError):
    """A reader's lease holds no longer: files that it may still need are gone, or may be."""

    entry = "lease-lost"
    explained = True


class StillPending(LakecommitError):
    """Sealed epochs are not committed yet; nothing is lost, and whoever comes next commits them."""

    entry = "still-pending"


class UploadTooLate(LakecommitError):
    """An upload would have begun after its deadline; the attempt gives up so that nothing unnamed is left."""

    entry = "upload-too-late"
    explained = True
