"""What an exception of obstore means, as a value.

obstore tells some outcomes apart only in the text of its errors (412 and 409 are the same class), and those texts
carry URLs, the server's answer and a dump of the request. So the text is read here and nowhere else, and what leaves
this module is a reason put together from known words, numbers and error codes: no credential can be in it.
"""

from __future__ import annotations

import enum
import errno
import os
import re
from dataclasses import dataclass

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotModifiedError,
    NotSupportedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from lakecommit.errors import AccessDenied, StoreError


class FailureKind(enum.Enum):
    EXISTS = "exists"
    """Refused by create-if-absent: the name is taken."""
    CONFLICT = "conflict"
    """Refused because of a concurrent request; nothing happened."""
    ABSENT = "absent"
    NOT_MODIFIED = "not modified"
    NO_BUCKET = "no bucket"
    DENIED = "denied"
    TRANSIENT = "transient"
    """May or may not have taken effect; trying again can help."""
    PERMANENT = "permanent"
    """Recognised, without effect, and the same next time."""
    UNRECOGNISED = "unrecognised"
    """Nobody knows whether it had an effect, and a retry is not known to help."""


RETRIED = frozenset({FailureKind.TRANSIENT, FailureKind.CONFLICT})
"""What an idempotent request is repeated for."""


class NoAnswer(Exception):
    """A request was given up because no answer came in time."""


@dataclass(frozen=True, slots=True)
class StoreFailure:
    kind: FailureKind
    reason: str
    attempts: int = 1


def failure_of(error: Exception) -> StoreFailure:
    """Classifies what obstore raised, or `NoAnswer`.

    `reason` is short, lower case and free of URLs, names and server text.
    """
    text = str(error)
    if isinstance(error, NoAnswer):
        return StoreFailure(FailureKind.TRANSIENT, "timed out")
    if isinstance(error, NotModifiedError):
        return StoreFailure(FailureKind.NOT_MODIFIED, "not modified")
    if _CREDENTIAL_SERVICES.search(text):
        return StoreFailure(FailureKind.TRANSIENT, _NO_CREDENTIALS)
    status = _STATUS.search(text)
    if status is not None:
        return _of_status(int(status[1]), _code(text))
    if isinstance(error, AlreadyExistsError | PreconditionError):
        return StoreFailure(FailureKind.EXISTS, "exists")
    if isinstance(error, FileNotFoundError):
        return StoreFailure(FailureKind.ABSENT, "not found")
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return StoreFailure(FailureKind.DENIED, _os_reason(text) or "permission denied")
    if isinstance(error, NotSupportedError):
        return StoreFailure(FailureKind.PERMANENT, "the store does not support this operation")
    if isinstance(error, ValueError):
        return StoreFailure(FailureKind.PERMANENT, "obstore refused the request as invalid")
    if isinstance(error, BaseError):
        return _without_status(text)
    return StoreFailure(FailureKind.UNRECOGNISED, f"unexpected {type(error).__name__}")


def error_of(failure: StoreFailure, verb: str, path: str, location: str) -> StoreError:
    """The error to raise for a failure that ends an operation, with what to do about it."""
    tried = f" after {failure.attempts} attempts" if failure.attempts > 1 else ""
    what = f"cannot {verb} {path or 'the location'} in {location}: {failure.reason}{tried}"
    if failure.kind is FailureKind.DENIED or failure.reason == _NO_CREDENTIALS:
        return AccessDenied(
            f"{what}; check the credentials (environment variables or store.* options) and their rights"
        )
    if failure.kind is FailureKind.NO_BUCKET:
        return StoreError(f"{what}; the bucket or container does not exist, create it or correct the location")
    if failure.kind is FailureKind.ABSENT:
        return StoreError(f"{what}; the object is gone, or the bucket or container does not exist: check the location")
    if failure.reason == os.strerror(errno.ENOSPC).lower():
        return StoreError(f"{what}; free some space and run it again")
    if failure.kind in RETRIED:
        return StoreError(f"{what}; run it again once the store answers")
    return StoreError(f"{what}; mend that and run it again")


_STATUS = re.compile(r" - Server returned non-2xx status code: (\d{3}) ")
_CODE = re.compile(r"<Code>([A-Za-z0-9.]{1,60})</Code>")
_JSON_REASON = re.compile(r'"reason"\s*:\s*"([A-Za-z]{1,60})"')
_OS_ERROR = re.compile(r"\(os error (\d{1,5})\)")
_CREDENTIAL_SERVICES = re.compile(r"169\.254\.169\.254|169\.254\.170\.2|fd00:ec2::254|metadata\.google\.internal")
_NO_CREDENTIALS = "no credentials are set and the machine's metadata service gave none"
_MISSING_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist")
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken"})
_CAUSES = (
    (re.compile(r"TimedOut|timed out|deadline has elapsed"), "timed out"),
    (re.compile(r"ConnectionRefused|Connection refused"), "connection refused"),
    (re.compile(r"ConnectionReset|Connection reset|BrokenPipe|IncompleteMessage|UnexpectedEof"), "connection lost"),
    (re.compile(r"dns error|failed to lookup address"), "host name not found"),
    (re.compile(r"certificate|InvalidCertificate", re.IGNORECASE), "tls certificate not accepted"),
)


def _code(text: str) -> str:
    """The store's own error code, such as `SlowDown`; letters and digits only, so nothing secret fits in."""
    if _MISSING_BUCKET.search(text):
        return "NoSuchBucket"
    found = _CODE.search(text) or _JSON_REASON.search(text)
    return found[1] if found else ""


def _of_status(status: int, code: str) -> StoreFailure:
    reason = f"{status} {code}".rstrip()
    if status == 412:
        return StoreFailure(FailureKind.EXISTS, reason)
    if status == 409:
        # Azure answers a refused create-if-absent with 409 and a code of its own; S3 means a concurrent request.
        return StoreFailure(FailureKind.EXISTS if code == "BlobAlreadyExists" else FailureKind.CONFLICT, reason)
    if status == 404:
        return StoreFailure(FailureKind.NO_BUCKET if code == "NoSuchBucket" else FailureKind.ABSENT, reason)
    if code in _EXPIRED:
        return StoreFailure(FailureKind.DENIED, f"{reason}, the credentials have expired")
    if status in {401, 403}:
        return StoreFailure(FailureKind.DENIED, reason)
    # S3 reports a connection that stood still too long as 400.
    if status in {408, 425, 429} or (status >= 500 and status not in {501, 505}) or code == "RequestTimeout":
        return StoreFailure(FailureKind.TRANSIENT, reason)
    return StoreFailure(FailureKind.PERMANENT, reason)


def _without_status(text: str) -> StoreFailure:
    from_os = _os_reason(text)
    if "LocalFileSystem" in text and from_os is not None:
        # A directory that was empty may be removed in the moment in which something is written into it.
        return StoreFailure(
            FailureKind.TRANSIENT if from_os == os.strerror(errno.ENOENT).lower() else FailureKind.PERMANENT, from_os
        )
    if "Received redirect without LOCATION" in text:
        return StoreFailure(
            FailureKind.PERMANENT, "redirected to another region; set store.region to the bucket's region"
        )
    if "HTTP error: builder error" in text:
        return StoreFailure(
            FailureKind.PERMANENT, "the request cannot be built; for an http:// endpoint set store.allow_http"
        )
    if "DeleteObjects request failed for key" in text:
        return StoreFailure(FailureKind.TRANSIENT, "a key of a bulk delete failed")
    if "HTTP error" in text or "Server returned error response" in text or "Got invalid" in text:
        cause = next((words for pattern, words in _CAUSES if pattern.search(text)), "no usable response")
        return StoreFailure(FailureKind.TRANSIENT, cause)
    return StoreFailure(FailureKind.UNRECOGNISED, "an answer that is not understood")


def _os_reason(text: str) -> str | None:
    found = _OS_ERROR.search(text)
    return os.strerror(int(found[1])).lower() if found else None
