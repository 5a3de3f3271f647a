"""What a Spark worker asks the committer, and its answer: bytes in our own Avro records, never pickles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum

from lakecommit import errors
from lakecommit.state.container import RecordKind


class Verb(Enum):
    PLAN = "plan"
    COMMIT_EPOCH = "commit_epoch"
    COMMIT_BATCH = "commit_batch"
    ABORT_BATCH = "abort_batch"
    SETTINGS = "settings"
    FIGURES = "figures"


@dataclass(frozen=True, slots=True)
class Request:
    """`options` are the writer's, as Spark hands them over, and may hold credentials: a request is never shown.

    `query` is set for a batch write, whose writer chose it; an epoch's query is known from its reports, each of which
    is an encoded `Report`, or b"" where Spark has none. `session` is the id that `register` gave to the Spark session,
    and `execution` Spark's own of the batch write, "" where it is not known. `overwrite` is Spark's word for a write
    that replaces what is there, as each epoch of a stream may. `read_version` is the table's version that the rows of a
    batch write may rest on: for a plan as the driver has found it, for a commit as the plan's answer has it.
    """

    verb: Verb
    options: Mapping[str, str]
    schema: str
    streaming: bool
    query: str = ""
    epoch: int = 0
    reports: tuple[bytes, ...] = ()
    session: str = ""
    execution: str = ""
    overwrite: bool = False
    read_version: int | None = None

    def __repr__(self) -> str:
        return f"Request({self.verb.value}, epoch={self.epoch}, reports={len(self.reports)})"


@dataclass(frozen=True, slots=True)
class Answer:
    """`plan` and `done` answer a plan. `version` is the table's: the one that a batch write rests on, or its own.
    `defaults` are options that the session sets. Of settings, which whoever reads asks for, `plan` is the location of
    the table that the request names, if the session's catalog has to be asked for it, and `side_by_side` is how many
    tasks Spark runs at a time."""

    plan: str = ""
    done: Mapping[str, int] = field(default_factory=dict)
    skip: bool = False
    defaults: Mapping[str, str] = field(default_factory=dict)
    version: int | None = None
    side_by_side: int | None = None
    error: str = ""
    message: str = ""

    def __repr__(self) -> str:
        return f"Answer(version={self.version}, error={self.error!r})"


_STRINGS = {"type": "map", "values": "string"}

REQUEST = RecordKind(
    "request",
    1,
    {
        "type": "record",
        "name": "Request",
        "namespace": "lakecommit",
        "fields": [
            {"name": "verb", "type": "string"},
            {"name": "options", "type": _STRINGS},
            {"name": "schema", "type": "string"},
            {"name": "streaming", "type": "boolean"},
            {"name": "query", "type": "string"},
            {"name": "epoch", "type": "long"},
            {"name": "reports", "type": {"type": "array", "items": "bytes"}},
            {"name": "session", "type": "string"},
            {"name": "execution", "type": "string"},
            {"name": "overwrite", "type": "boolean"},
            {"name": "read_version", "type": ["null", "long"]},
        ],
    },
)

ANSWER = RecordKind(
    "answer",
    1,
    {
        "type": "record",
        "name": "Answer",
        "namespace": "lakecommit",
        "fields": [
            {"name": "plan", "type": "string"},
            {"name": "done", "type": {"type": "map", "values": "long"}},
            {"name": "skip", "type": "boolean"},
            {"name": "defaults", "type": _STRINGS},
            {"name": "version", "type": ["null", "long"]},
            {"name": "side_by_side", "type": ["null", "long"]},
            {"name": "error", "type": "string"},
            {"name": "message", "type": "string"},
        ],
    },
)


def encode_request(request: Request) -> bytes:
    return REQUEST.encode({**asdict(request), "verb": request.verb.value, "reports": list(request.reports)})


def decode_request(data: bytes) -> Request:
    record = REQUEST.decode(data, "from a worker")
    return Request(**{**record, "verb": Verb(record["verb"]), "reports": tuple(record["reports"])})


def encode_answer(answer: Answer) -> bytes:
    return ANSWER.encode(asdict(answer))


def decode_answer(data: bytes) -> Answer:
    return Answer(**ANSWER.decode(data, "from the committer"))


def failure(error: BaseException) -> Answer:
    """An error as an answer. Its class travels by name, so that the worker raises what the committer raised; of one
    that is declared elsewhere, with facts of its own, the nearest of `errors` does."""
    known = (each.__name__ for each in type(error).__mro__ if getattr(errors, each.__name__, None) is each)
    return Answer(error=next(known, type(error).__name__), message=str(error))


def raise_failure(answer: Answer) -> None:
    """Raises what the committer raised; nothing if it answered."""
    if not answer.error:
        return
    known = getattr(errors, answer.error, None)
    if isinstance(known, type) and issubclass(known, errors.LakecommitError):
        raise known(answer.message)
    raise errors.CommitFailed(f"the committer failed with {answer.error}: {answer.message}; run the query again")
