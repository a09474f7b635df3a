"""A command that goes on printing, read with a limit on its silence and left without waiting."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from enum import Enum

from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.model.ports import Clock, Command, Runner

#: A process that cannot be ended keeps its channel open; nobody waits longer than this for it.
CLOSE_S = 3.0


class Silence(Enum):
    QUIET = "quiet"
    """Nothing came within the limit; what comes later is not lost."""
    ENDED = "ended"


class Channel:
    """``read`` gives the next chunk, or how it was silent; ``close`` ends the command.

    ``read`` raises what the runner raises: ``NodeUnreachable`` where the way to the node broke.
    """

    def __init__(self, runner: Runner, clock: Clock, command: Command) -> None:
        self._clock = clock
        self._name = f"channel to {command.host}"
        self._chunks: AsyncIterator[bytes] = runner.stream(command)
        self._next: asyncio.Task[bytes | Silence] | None = None

    async def read(self, limit_s: float) -> bytes | Silence:
        if self._next is None:
            self._next = spawn(self._take(), name=self._name)
        timer = spawn(self._clock.sleep(limit_s), name=f"{self._name}: silence")
        try:
            await asyncio.wait((self._next, timer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
        if not self._next.done():
            return Silence.QUIET
        done, self._next = self._next, None
        return done.result()

    async def close(self) -> None:
        """End it. Returns after :data:`CLOSE_S` at the latest; the rest goes on by itself."""
        closing = spawn(self._close(), name=f"{self._name}: close")
        timer = spawn(self._clock.sleep(CLOSE_S), name=f"{self._name}: close limit")
        try:
            await asyncio.wait((closing, timer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()

    async def _take(self) -> bytes | Silence:
        try:
            return await anext(self._chunks)
        except StopAsyncIteration:
            return Silence.ENDED

    async def _close(self) -> None:
        if self._next is not None:
            await cancel_and_wait(self._next)
        close = getattr(self._chunks, "aclose", None)
        if close is not None:
            with contextlib.suppress(Exception):
                await close()
