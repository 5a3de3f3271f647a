"""Errors, named by what a handler would do about them.

Every message is lower case and reads: what is wrong, the facts, then the remedy after a semicolon or full stop.
No message may contain a credential.
"""

from __future__ import annotations


class LakecommitError(Exception):
    """Base of everything that lakecommit raises on purpose."""


class InvalidInput(LakecommitError):
    """The caller has to change an option, a path or a schema; nothing was written."""


class SchemaMismatch(InvalidInput):
    """The data does not fit the table, by column."""


class UnsupportedTable(InvalidInput):
    """The table uses a feature that a blind append cannot honour."""


class StoreError(LakecommitError):
    """The object store said no, or could not be reached within the bound of the retries."""


class AccessDenied(StoreError):
    """Credentials are missing, wrong or expired; trying again does not help."""


class LocalDiskFailed(LakecommitError):
    """Local disk did not take what memory has no room for; once it does, the next start goes on."""


class CorruptState(LakecommitError):
    """A durable record is missing, damaged or names something outside its own attempt."""


class ContradictoryState(LakecommitError):
    """Records that are intact contradict each other: a rewound checkpoint, a copied state, a recreated table."""


class TableMadeAnew(ContradictoryState):
    """Another table is in the place of the one that was known: what the query has sealed says what to do about it."""


class Overtaken(LakecommitError):
    """Somebody else has committed what this caller meant to commit."""


class CommitFailed(LakecommitError):
    """A commit did not happen, or may not have; what was staged is kept, and it is safe to run it again."""


class StillPending(LakecommitError):
    """Sealed epochs are not committed yet; nothing is lost, and whoever comes next commits them."""


class UploadTooLate(LakecommitError):
    """An upload would have begun after its deadline; the attempt gives up so that nothing unnamed is left."""
