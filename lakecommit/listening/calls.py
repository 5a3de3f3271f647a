"""Calling a listener's code: beside everything else, whatever it raises, and however long it takes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")


class ListenerCall(Protocol):
    async def __call__(self, work: Callable[[], T]) -> T:
        """Runs `work`, which never raises, where it holds up nobody."""


class ListenerFailed(Exception):
    """A listener raised an exception, which is the cause of this one."""


@dataclass(frozen=True, slots=True)
class _Raised:
    error: BaseException


async def call_in_thread(work: Callable[[], T]) -> T:
    """In a thread of its own, which never keeps the process from ending: a listener may take for ever."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def hand_over(result: T) -> None:
        if not answer.done():
            answer.set_result(result)

    def run() -> None:
        result = work()
        if not loop.is_closed():
            loop.call_soon_threadsafe(hand_over, result)

    threading.Thread(target=run, name="lakecommit-listener", daemon=True).start()
    return await answer


async def call_listener(call: ListenerCall, work: Callable[[], T]) -> T:
    """What `work` returns. Raises `ListenerFailed` if it raises anything, be it the wish to end the process."""

    def attempt() -> T | _Raised:
        try:
            return work()
        except BaseException as error:
            return _Raised(error)

    outcome = await call(attempt)
    if isinstance(outcome, _Raised):
        raise ListenerFailed(f"{type(outcome.error).__name__}: {outcome.error}") from outcome.error
    return outcome
