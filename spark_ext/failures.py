"""What a Spark worker says of a failure: our sentence first.

Spark's exceptions begin with the text that a worker sends, and by default that text begins with stack frames. A worker
that finds this variable sends the exception alone.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from lakecommit.errors import CommitFailed, LakecommitError

_WITHOUT_FRAMES = "SPARK_HIDE_TRACEBACK"


@contextmanager
def sentence_first(doing: str) -> Iterator[None]:
    """Whatever fails within is the first line of the exception that Spark shows. Around all that Spark calls.

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
