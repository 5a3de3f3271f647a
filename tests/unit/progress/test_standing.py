"""Where an epoch stands, by marks and seals."""

from __future__ import annotations

import pytest

from lakecommit.model import Epoch, Marks
from lakecommit.progress.standing import Standing, standing_of


@pytest.mark.parametrize(
    ("epoch", "mark", "own", "sealed", "chained", "expected"),
    [
        (5, None, None, False, False, Standing.OPEN),
        (5, None, None, True, True, Standing.PENDING),
        (5, 4, 4, False, False, Standing.OPEN),
        (5, 4, 4, True, True, Standing.PENDING),
        (5, 4, 4, True, False, Standing.PENDING),
        (5, 5, 5, True, True, Standing.DONE),
        (5, 9, 5, True, True, Standing.DONE),
        (5, 9, 4, True, True, Standing.PASSED),
        (5, 9, None, True, True, Standing.PASSED),
        (5, 5, 5, True, False, Standing.STRAY),
        (5, 9, 9, False, False, Standing.UNSEALED),
    ],
)
def test_where_an_epoch_stands(epoch, mark, own, sealed, chained, expected):
    assert standing_of(Epoch(epoch), Marks(mark, own), sealed=sealed, chained=chained) is expected
