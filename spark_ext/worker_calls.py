"""What surrounds all that Spark calls in its Python workers.

A failure has our sentence first. Spark's exceptions begin with the text that a worker sends, and by default that text
begins with stack frames. A worker that finds this variable sends the exception alone.

A worker that is used again is not kept busy by what never becomes garbage. Spark's daemon has it collect after each
task and each planning or committing call, and with all modules that are imported by then that takes some 60 ms of a
core, which the next task or the commit waits for.
"""

from __future__ import annotations

import gc
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from lakecommit.errors import CommitFailed, LakecommitError

_WITHOUT_FRAMES = "SPARK_HIDE_TRACEBACK"


@contextmanager
def worker_call(doing: str) -> Iterator[None]:
    """Whatever fails within is the first line of the exception that Spark shows.

    What nobody foresaw is said in a sentence, too, with its stack frames below. The variable reaches nobody else's
    failure: a worker that has sent an exception ends.
    """
    try:
        yield
    except LakecommitError:
        os.environ[_WITHOUT_FRAMES] = "1"
        raise
    except Exception as error:
        os.environ[_WITHOUT_FRAMES] = "1"
        said = str(error).strip() or "it says nothing more"
        frames = "".join(traceback.format_tb(error.__traceback__))
        raise CommitFailed(
            f"{doing} failed with {type(error).__name__}: {said}; run it again, and if it fails again report it, with "
            f"the frames below\n{frames}"
        ) from None
    _set_aside()


@cache
def _set_aside() -> None:
    """What is alive when the first call has ended is left out of all later collections: modules, classes and functions,
    and the little that the call itself still holds. Once for each process, so that nothing gathers there."""
    gc.freeze()
