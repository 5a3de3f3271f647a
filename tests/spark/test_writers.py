"""What writers ask the committer, and what a worker sends to Spark where they fail. Nothing here starts a JVM."""

from __future__ import annotations

import gc
import io
import pickle

import pytest
from pyspark.serializers import read_int
from pyspark.sql.types import LongType, StructField, StructType
from pyspark.util import handle_worker_exception

from lakecommit.errors import CommitFailed, InvalidInput, SchemaMismatch
from lakecommit.service.wire import Answer, Verb
from lakecommit.spark_ext import committer_link, worker_calls
from lakecommit.spark_ext.source import LakecommitDataSource
from lakecommit.spark_ext.worker_calls import worker_call

SCHEMA = StructType([StructField("id", LongType())])


@pytest.fixture
def asked(monkeypatch):
    """The verbs of all requests."""
    verbs = []

    def submit(request):
        verbs.append(request.verb)
        return committer_link.Submitted(Answer(), inline=False)

    monkeypatch.setattr(committer_link, "submit", submit)
    return verbs


def test_a_planning_worker_asks_for_a_plan(asked):
    LakecommitDataSource({"path": "/lake/orders"}).streamWriter(SCHEMA, overwrite=False)
    assert asked == [Verb.PLAN]


def test_a_table_that_is_named_beside_a_location_is_not_passed_over(asked):
    """Where a name was looked up, the driver says so."""
    given = {"path": "/here", "table": "db.orders"}
    for write in (LakecommitDataSource(given).writer, LakecommitDataSource(given).streamWriter):
        with pytest.raises(InvalidInput, match=r"both a location and the option table, db\.orders.*; leave one out"):
            write(SCHEMA, False)
    LakecommitDataSource({**given, "lakecommit.locationof": "db.orders"}).writer(SCHEMA, False)
    assert asked == [Verb.PLAN]


def test_a_commit_worker_asks_for_no_plan(asked):
    """As Spark does it: from a source that was pickled. One that is refused would hide what the commit met."""
    source = pickle.loads(pickle.dumps(LakecommitDataSource({"path": "/lake/orders"})))
    source.streamWriter(SCHEMA, overwrite=False).abort([], 7)
    assert asked == []
    source.streamWriter(SCHEMA, overwrite=False).commit([], 7)
    assert asked == [Verb.COMMIT_EPOCH]


@pytest.mark.parametrize("error", [SchemaMismatch("no"), RuntimeError("never foreseen")])
def test_an_abort_of_a_batch_never_hides_why_it_is_called(asked, monkeypatch, error):
    writer = LakecommitDataSource({"path": "/lake/orders"}).writer(SCHEMA, overwrite=False)

    def fail(request):
        raise error

    monkeypatch.setattr(committer_link, "submit", fail)
    writer.abort([None])


def sent(error) -> str:
    """What pyspark's worker sends to the JVM."""
    out = io.BytesIO()
    try:
        raise error
    except Exception as raised:
        handle_worker_exception(raised, out)
    out.seek(0)
    assert read_int(out) == -2
    return out.read(read_int(out)).decode()


def failed(error) -> Exception:
    with pytest.raises(Exception) as failure, worker_call("a task of a write to /lake/orders"):
        raise error
    return failure.value


@pytest.fixture(autouse=True)
def a_worker_of_its_own(monkeypatch):
    """Which ends, with its environment."""
    monkeypatch.setenv(worker_calls._WITHOUT_FRAMES, "")


def test_a_worker_sends_our_sentence_alone():
    error = failed(SchemaMismatch("column a is missing; add it"))
    assert sent(error) == "lakecommit.errors.SchemaMismatch: column a is missing; add it\n"


def test_what_nobody_foresaw_is_a_sentence_with_its_frames_below():
    error = failed(ZeroDivisionError("by zero"))
    assert isinstance(error, CommitFailed)
    first, *frames = sent(error).splitlines()
    assert first.startswith(
        "lakecommit.errors.CommitFailed: a task of a write to /lake/orders failed with ZeroDivisionError: by zero; run"
    )
    assert any("test_writers.py" in line for line in frames)
    assert not any("Traceback" in line for line in frames)


@pytest.fixture
def a_fresh_collector():
    """As in a worker that has just begun."""
    gc.unfreeze()
    worker_calls._set_aside.cache_clear()
    yield
    gc.unfreeze()
    worker_calls._set_aside.cache_clear()


def test_a_worker_that_is_used_again_does_not_look_for_garbage_among_modules(a_fresh_collector):
    """Spark's daemon collects after each task. What a later call leaves behind is collected as ever."""
    with pytest.raises(CommitFailed), worker_call("a task that fails"):
        raise ZeroDivisionError
    assert gc.get_freeze_count() == 0  # its worker ends
    with worker_call("a task"):
        pass
    frozen = gc.get_freeze_count()
    assert frozen > 10_000
    with worker_call("another task"):
        made = [[] for _ in range(1_000)]
    assert gc.get_freeze_count() <= frozen
    assert len(gc.get_objects()) >= len(made)
