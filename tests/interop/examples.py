"""Random examples for a test: a few in `make test`, more of them at length, and of each seed the same ones each time.

A failure is printed with a line that replays it, and kept in `.hypothesis`. If examples take Spark, `make test` leaves
it as large as it was found. The first round at length begins with what is kept, and makes it smaller, for five minutes
at most; so does each round with what it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature, signature
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

# After nine, Hypothesis makes most examples from others, by repeating a part of them.
ROUND = 9
_TIMEOUT_S = 3600
_AT_LENGTH = [pytest.mark.soak, pytest.mark.timeout(_TIMEOUT_S)]


def examples(
    *, seeds: Sequence[int], count: int = ROUND, rounds: int, shrink: bool = False, **drawn: SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Any]:
    """Makes a test of a function, with a case for each seed in `make test`, of `count` examples, and for each round.

    A seed draws the same examples, whoever runs it and together with whatever, until a strategy or Hypothesis itself is
    changed. Those of the rounds are 101, 102 and so on; pytest's `--hypothesis-seed` says others. `shrink`: what fails
    in `make test` is made smaller, too.
    """

    def decorate(test: Callable[..., None]) -> Any:
        def case(pytestconfig: pytest.Config, number: int, at_length: bool, **fixtures: Any) -> None:
            if not at_length:
                phases = [Phase.generate, *([Phase.shrink] if shrink else [])]
                return run(test, number, count, phases, drawn, **fixtures)
            first = int(pytestconfig.getoption("--hypothesis-seed") or 101)
            # Not the phase that explains a failure: it takes as long again.
            phases = [*([] if number else [Phase.reuse]), Phase.generate, Phase.shrink]
            return run(test, first + number, ROUND, phases, drawn, **fixtures)

        fixtures = [name for name in signature(test).parameters if name not in drawn]
        names = ["pytestconfig", "number", "at_length", *fixtures]
        case.__signature__ = Signature(  # type: ignore[attr-defined]
            [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        )
        case.__doc__ = test.__doc__
        cases = [pytest.param(number, False, id=f"seed {number}") for number in seeds]
        cases += [pytest.param(number, True, marks=_AT_LENGTH, id=f"round {number + 1}") for number in range(rounds)]
        return pytest.mark.parametrize(("number", "at_length"), cases)(case)

    return decorate


def run(
    test: Callable[..., None],
    number: int,
    count: int,
    phases: Sequence[Phase],
    drawn: Mapping[str, SearchStrategy[Any]],
    **fixtures: Any,
) -> None:
    """So many examples of one seed."""
    own = settings(
        max_examples=count,
        phases=phases,
        deadline=None,
        derandomize=False,
        print_blob=True,
        report_multiple_bugs=False,
        # An example is a whole table, which takes a while to be drawn.
        suppress_health_check=[HealthCheck.too_slow],
    )
    seed(number)(own(given(**drawn)(test)))(**fixtures)
