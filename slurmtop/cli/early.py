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
from typing import IO, Any, cast

from slurmtop.collect.env import child_environment
from slurmtop.model.ports import Clock, Command, Completed, FileStat, Runner, RunnerError

#: As the ordinary runner: output past the limit is dropped, and a runaway is ended.
_MAX_BYTES = Command(()).max_bytes
_OVERRUN_BYTES = 16 * 1024 * 1024
_BLOCK_BYTES = 256 * 1024
#: A child that has ended, but whose own children keep its output open.
_DRAIN_S = 1.0


class _Pipe:
    """What one end of the child printed, at most ``max_bytes`` of it, kept by a thread."""

    def __init__(self, pipe: IO[bytes], max_bytes: int, runaway: Callable[[], None]) -> None:
        self.kept = bytearray()
        self.truncated = False
        self._pipe = pipe
        self._max_bytes = max_bytes
        self._runaway = runaway
        self.thread = threading.Thread(target=self._collect, name="first squeue", daemon=True)
        self.thread.start()

    def _collect(self) -> None:
        seen = 0
        with contextlib.suppress(OSError, ValueError), self._pipe:
            while block := os.read(self._pipe.fileno(), _BLOCK_BYTES):
                seen += len(block)
                room = self._max_bytes - len(self.kept)
                self.kept += block[:room]
                self.truncated = self.truncated or len(block) > room
                if seen > 2 * self._max_bytes + _OVERRUN_BYTES:
                    self._runaway()
                    return


class EarlyChild:
    """One command that already runs. Its output is kept by threads until somebody asks."""

    def __init__(
        self,
        argv: tuple[str, ...],
        process: "subprocess.Popen[bytes]",
        clock: Clock,
        max_bytes: int = _MAX_BYTES,
    ) -> None:
        self.argv = argv
        self.started_at: datetime = clock.now()
        self._began = clock.monotonic()
        self._clock = clock
        self._process = process
        assert process.stdout is not None
        assert process.stderr is not None
        self._out = _Pipe(process.stdout, max_bytes, self._kill)
        self._err = _Pipe(process.stderr, max_bytes, self._kill)
        self._took_s = 0.0
        self._thread = threading.Thread(target=self._collect, name="first squeue", daemon=True)
        self._thread.start()

    def _collect(self) -> None:
        self._process.wait()
        for pipe in (self._out, self._err):
            pipe.thread.join(_DRAIN_S)
        self._took_s = self._elapsed_s()

    def _elapsed_s(self) -> float:
        return self._clock.monotonic() - self._began

    async def answer(self, command: Command) -> Completed:
        """What it printed; like a fresh run, with the time limit counted from its real start."""
        left_s = command.timeout_s - self._elapsed_s()
        try:
            await asyncio.wait_for(asyncio.to_thread(self._thread.join), max(left_s, 0.1))
        except TimeoutError:
            self.end()
            return Completed(None, b"", b"", self.started_at, self._elapsed_s())
        except asyncio.CancelledError:
            self.end()
            raise
        out, err, most = bytes(self._out.kept), bytes(self._err.kept), command.max_bytes
        cut = self._out.truncated or self._err.truncated
        return Completed(
            rc=self._process.returncode,
            stdout=out[:most],
            stderr=err[:most],
            started_at=self.started_at,
            took_s=self._took_s,
            truncated=cut or len(out) > most or len(err) > most,
        )

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def end(self) -> None:
        """Kill it with all it started; does nothing once it has ended."""
        if self._process.poll() is None:
            self._kill()
            self._thread.join(1.0)

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


def start_early(
    argv: tuple[str, ...],
    environ: Mapping[str, str],
    clock: Clock,
    max_bytes: int = _MAX_BYTES,
) -> EarlyChild | None:
    """Start ``argv`` now, to keep ``max_bytes`` of what it prints.

    None where that fails: the ordinary runner will say why.
    """
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=child_environment(environ),
            start_new_session=True,
        )
    except (OSError, ValueError):
        return None
    return EarlyChild(argv, process, clock, max_bytes)


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
