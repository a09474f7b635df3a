"""The first ``squeue``, started before anything slow is imported, and handed on when asked for.

On a busy cluster the queue takes about as long as importing the screen does; side by side they
cost the longer of the two.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from datetime import datetime
from typing import Any, cast

from slurmtop.collect.env import child_environment
from slurmtop.model.ports import Clock, Command, Completed, FileStat, Runner, RunnerError


class EarlyChild:
    """One command that already runs. Its output is kept by a thread until somebody asks."""

    def __init__(
        self, argv: tuple[str, ...], process: "subprocess.Popen[bytes]", clock: Clock
    ) -> None:
        self.argv = argv
        self.started_at: datetime = clock.now()
        self._began = clock.monotonic()
        self._clock = clock
        self._process = process
        self._out = b""
        self._err = b""
        self.took_s = 0.0
        self._thread = threading.Thread(target=self._collect, name="first squeue", daemon=True)
        self._thread.start()

    def _collect(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._out, self._err = self._process.communicate()
        self.took_s = self._clock.monotonic() - self._began

    async def answer(self, command: Command) -> Completed:
        """What it printed; like a fresh run, with the time limit counted from its real start."""
        left_s = command.timeout_s - (self._clock.monotonic() - self._began)
        try:
            await asyncio.wait_for(asyncio.to_thread(self._thread.join), max(left_s, 0.1))
        except TimeoutError:
            self.end()
            return Completed(None, b"", b"", self.started_at, command.timeout_s)
        except asyncio.CancelledError:
            self.end()
            raise
        out, err, most = self._out, self._err, command.max_bytes
        return Completed(
            rc=self._process.returncode,
            stdout=out[:most],
            stderr=err[:most],
            started_at=self.started_at,
            took_s=self.took_s,
            truncated=len(out) > most or len(err) > most,
        )

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def end(self) -> None:
        """Kill it with all it started; does nothing once it has ended."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._thread.join(1.0)


def start_early(
    argv: tuple[str, ...], environ: Mapping[str, str], clock: Clock
) -> EarlyChild | None:
    """Start ``argv`` now; None where that fails: the ordinary runner will say why."""
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=child_environment(environ),
            start_new_session=True,
        )
    except (OSError, ValueError):
        return None
    return EarlyChild(argv, process, clock)


class EarlyRunner:
    """Any runner; the first run of an early command takes the answer that is already coming."""

    def __init__(self, inner: Runner, children: Iterable[EarlyChild]) -> None:
        self._inner = inner
        self._early = {child.argv: child for child in children}

    async def run(self, command: Command) -> Completed:
        early = self._early.pop(command.argv, None) if command.host is None else None
        if early is not None:
            return await early.answer(command)
        return await self._inner.run(command)

    def stream(self, command: Command) -> AsyncIterator[bytes]:
        return self._inner.stream(command)

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        return await self._inner.read(path, offset, length, host)

    async def stat(self, path: str, host: str | None = None) -> FileStat:
        return await self._inner.stat(path, host)

    async def list(self, path: str, host: str | None = None) -> tuple[str, ...]:
        return await self._inner.list(path, host)

    def end(self) -> None:
        """End the early children that nobody asked for."""
        for child in self._early.values():
            child.end()
        self._early.clear()


class _Asked:
    """A runner that only notes what it is asked to run."""

    def __init__(self) -> None:
        self.argv: tuple[str, ...] = ()

    async def run(self, command: Command) -> Completed:
        self.argv = command.argv
        raise RunnerError("only asked what would be run")


def first_command(ask: Callable[[Runner], Coroutine[Any, Any, object]]) -> tuple[str, ...]:
    """The first command that ``ask`` would run: who asks a question knows best how.

    ``ask`` must not wait for anything before it; then it runs through without an event loop.
    """
    asked = _Asked()
    asking = ask(cast("Runner", asked))
    with contextlib.suppress(Exception):
        asking.send(None)
    asking.close()
    return asked.argv
