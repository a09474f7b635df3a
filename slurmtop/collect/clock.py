"""The real clock, the one way to start a task, and the one way to bound a wait."""

import asyncio
import time
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

from slurmtop.model.ports import Clock

T = TypeVar("T")

_running: set[asyncio.Task[Any]] = set()


class SystemClock:
    """Wall time as aware UTC, and seconds that never jump."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def spawn(coro: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
    """Start ``coro`` as a named task and keep a reference until it ends.

    The event loop itself holds tasks only weakly: one that nobody keeps may vanish half way.
    """
    task = asyncio.create_task(coro, name=name)
    _running.add(task)
    task.add_done_callback(_running.discard)
    return task


def spawn_shared(coro: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
    """As :func:`spawn`, for an answer that several wait for, each behind ``asyncio.shield``.

    Where all of them have gone away nobody hears how it ended, and Python would print that.
    """
    task = spawn(coro, name=name)
    task.add_done_callback(_heard)
    return task


def _heard(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()


async def cancel_and_wait(*tasks: asyncio.Task[Any]) -> None:
    """Cancel ``tasks`` and wait until they are gone; what they raise is dropped."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def pause(clock: Clock, seconds: float) -> None:
    """Wait on purpose, as between two looks at the same thing.

    The clock of a replay goes ahead at once here; its time limits, which sleep, stay limits.
    """
    wait = getattr(clock, "pause", None) or clock.sleep
    await wait(seconds)


async def within(clock: Clock, coro: Coroutine[Any, Any, T], seconds: float, *, name: str) -> T:
    """What ``coro`` returns, or TimeoutError when it needs more than ``seconds`` of ``clock``.

    ``coro`` is cancelled then, and waited for, so that its children are gone as well.
    """
    work = spawn(coro, name=name)
    timer = spawn(clock.sleep(seconds), name=f"{name}: time limit")
    try:
        await asyncio.wait((work, timer), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
    finally:
        await cancel_and_wait(work, timer)
    raise TimeoutError(f"{name} took longer than {seconds:.0f} s")
