"""An S3 that loses or refuses one request of each kind, and what must have become of that: nothing."""

from __future__ import annotations

from .faulty_proxy import Fault, FaultyProxy, Rule
from .steps import creation, step_of
from .streams import Stream

EPOCHS = 8
_BROKEN = (
    ("PUT", "manifest", 1, Fault.LOST, 1),
    ("PUT", "data", 2, Fault.LOST, 1),
    ("PUT", "seal", 3, Fault.LOST, 1),
    # Of a Parquet directory, a compact.
    ("PUT", "version", 3, Fault.LOST, 1),
    ("PUT", "version", 4, Fault.LOST, 1),
    ("PUT", "seal", 5, Fault.CONFLICT, 1),
    ("PUT", "version", 5, Fault.CONFLICT, 2),
    ("PUT", "seal", 6, Fault.INTERNAL_ERROR, 1),
    ("GET", "seal", 6, Fault.SLOW_DOWN, 1),
    ("PUT", "version", 6, Fault.RESET, 1),
    ("PUT", "manifest", 7, Fault.TOO_MANY, 1),
)


def break_every_step(proxy: FaultyProxy, stream: Stream) -> list[Rule]:
    """Of a stream of `EPOCHS`, each of which is committed by itself."""
    rules = [proxy.rule("PUT", creation(stream), Fault.LOST)]
    for method, step, epoch, fault, times in _BROKEN:
        rules.append(proxy.rule(method, step_of(stream, step, epoch), fault, times))
    return rules


def assert_all_met(rules: list[Rule]) -> None:
    assert [rule.pattern.pattern for rule in rules if not rule.met.is_set()] == []
