"""Two processes that parse logs side by side, for when one core would take too long.

A child reads plain files of this machine by itself; bytes that come through a Runner (recorded
ones, unpacked ones) are handed over. What comes back are the traces of a whole source, or what
all logs of one job say. A child that ends early costs the sources that it had.
"""

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slurmtop.collect import log_child
from slurmtop.collect.files import path_bytes
from slurmtop.collect.log_content import Content
from slurmtop.model.facts import LogsSay
from slurmtop.model.ports import FileTimeout
from slurmtop.model.trace import Traces

PROCESSES = 2
#: The two ends of a long log go to its child in one piece.
_SENT_AT_ONCE = 1536 * 1024
_SCRIPT = Path(__file__).with_name("log_child.py")
_PACKAGE_ROOT = Path(__file__).resolve().parents[2]


class ReaderLost(Exception):
    """The process that parsed a source has ended; ``str()`` says so for people."""


class _Child:
    """One process of ``log_child.py``, with a thread that waits for what comes back."""

    def __init__(self) -> None:
        # Few logs need no pool, and then its start is not waited for.
        from multiprocessing.connection import Connection

        ours, theirs = socket.socketpair()
        handle = theirs.fileno()
        try:
            self.pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", str(_SCRIPT), str(_PACKAGE_ROOT)],
                dict(os.environ),
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, handle, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
            )
        finally:
            theirs.close()
        self._connection: Connection[Any, Any] = Connection(ours.detach())
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._sending = asyncio.Lock()
        self.lost = False
        self._thread = threading.Thread(target=self._receive, name="parsed logs", daemon=True)
        self._thread.start()
        self.open_sources = 0

    async def send(
        self, key: int, orders: Sequence[tuple[Any, ...]], *, short: bool = False
    ) -> None:
        """Orders for one source. Waits while the child is busy, so that nothing piles up.

        ``short`` ones fit into the socket, as long as no more than a few are in flight.
        """
        async with self._sending:
            if self.lost:
                raise ReaderLost(_GONE)
            try:
                if short:
                    self._connection.send((key, orders))
                else:
                    await asyncio.to_thread(self._connection.send, (key, orders))
            except (OSError, ValueError):
                self.lost = True
                raise ReaderLost(_GONE) from None

    async def ask(self, key: int, orders: Sequence[tuple[Any, ...]], *, short: bool = False) -> Any:
        """What the child answers to the last of these orders, which has an answer."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting[key] = future
        try:
            await self.send(key, orders, short=short)
            return await future
        finally:
            self._waiting.pop(key, None)
            if future.done() and not future.cancelled():
                # Where sending failed nobody has asked for it.
                future.exception()

    def _receive(self) -> None:
        try:
            while True:
                key, answer = self._connection.recv()
                self._loop.call_soon_threadsafe(self._answer, key, answer)
        except (EOFError, OSError, TypeError, ValueError):
            # RuntimeError: the loop is closed, nobody waits any more.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._lose)

    def _answer(self, key: int, answer: object) -> None:
        future = self._waiting.get(key)
        if future is not None and not future.done():
            future.set_result(answer)

    def _lose(self) -> None:
        self.lost = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ReaderLost(_GONE))

    def close(self) -> None:
        """End it; it holds nothing that would have to be saved."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        # Our end is closed for us when the last of its threads has ended. Where the kernel holds
        # one of them in a read that never ends, nobody waits for it.
        self._thread.join(1.0)
        held = self._thread.is_alive()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG if held else 0)
        self._connection.close()


_GONE = "the process that reads logs ended; this one was not read"


class PooledSource:
    """One source that is parsed in a child. Its bytes go in order, its traces come back whole."""

    def __init__(self, child: _Child, key: int, name: str, year: int | None) -> None:
        self._child = child
        self._key = key
        self._orders: list[tuple[Any, ...]] = [("open", name, year)]
        self._bytes = 0

    async def feed(self, data: bytes) -> None:
        self._orders.append(("feed", data))
        self._bytes += len(data)
        if self._bytes >= _SENT_AT_ONCE:
            await self._child.send(self._key, self._taken())

    async def skip(self, count: int) -> None:
        self._orders.append(("skip", count))

    async def finish(self, size: int | None) -> Traces:
        self._orders.append(("finish", size))
        try:
            traces: Traces = await self._child.ask(self._key, self._taken())
            return traces
        finally:
            self._child.open_sources -= 1

    def _taken(self) -> list[tuple[Any, ...]]:
        orders, self._orders, self._bytes = self._orders, [], 0
        return orders


class ParsePool:
    """:data:`PROCESSES` children, started when the first source is opened. Close it always."""

    def __init__(self, processes: int = PROCESSES) -> None:
        self._processes = processes
        self._children: list[_Child] = []
        self._keys = itertools.count()

    def open(self, name: str, year: int | None) -> PooledSource:
        """A new source, in the child that has the fewest."""
        child = self._least_busy()
        child.open_sources += 1
        return PooledSource(child, next(self._keys), name, year)

    async def read(self, path: str, year: int, size: int, *, whole: bool) -> Traces | Content:
        """What stands in a file of ``size`` bytes; where it is no plain text, what it holds.

        Raises :class:`OSError`, :class:`FileTimeout` and :class:`ReaderLost`.
        """
        child = self._least_busy()
        child.open_sources += 1
        order = ("read", path_bytes(path), path, year, size, whole)
        try:
            kind, *told = await child.ask(next(self._keys), [order], short=True)
        finally:
            child.open_sources -= 1
        if kind == log_child.ERROR:
            raise OSError(*told, path)
        if kind == log_child.HANGS:
            raise FileTimeout(*told)
        said: Traces | Content = told[0]
        return said

    async def judge(self, *what: object) -> LogsSay | None:
        """What :func:`~slurmtop.collect.log_verdict.judge_now` says of ``what``."""
        said: LogsSay | None = await self._least_busy().ask(next(self._keys), [("judge", *what)])
        return said

    def _least_busy(self) -> _Child:
        if not self._children:
            self._children = [_Child() for _ in range(self._processes)]
        return min(self._children, key=lambda one: (one.lost, one.open_sources))

    def close(self) -> None:
        for child in self._children:
            child.close()
        self._children = []
