"""The runner of this machine: Slurm's commands as children, files through a helper process."""

import asyncio
import contextlib
import errno
import os
import signal
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any

from slurmtop.collect.env import child_environment
from slurmtop.collect.files import FileDoor
from slurmtop.model.ports import Clock, Command, Completed, FileStat, RunnerError

#: What a child may print past its limit before it is taken for a runaway and ended.
_OVERRUN_BYTES = 16 * 1024 * 1024
#: From TERM to KILL when a child is out of time, and when slurmtop itself is leaving.
_TERM_GRACE_S = 2.0
_QUIT_GRACE_S = 0.5
#: A child that has ended, but whose own children keep its output open.
_DRAIN_S = 1.0
_STREAM_HIGH_BYTES = 4 * 1024 * 1024
_ENDED = b""


class _Child(asyncio.SubprocessProtocol):
    """One child in a session of its own: what it printed, within bounds, and how it ended.

    ``chunks`` is set for a stream: output then goes there instead of being kept, and the pipe
    is paused while nobody takes it.
    """

    def __init__(self, max_bytes: int, chunks: "asyncio.Queue[bytes] | None" = None) -> None:
        self.max_bytes = max_bytes
        self.kept = {1: bytearray(), 2: bytearray()}
        self.seen = 0
        self.truncated = False
        self.started = asyncio.Event()
        """It runs, or could not be started."""
        self.exited = asyncio.Event()
        self.drained = asyncio.Event()
        self.chunks = chunks
        self._queued = 0
        self._pipes = {1} if chunks is not None else {1, 2}
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if self.chunks is not None:
            self.chunks.put_nowait(data)
            self._queued += len(data)
            if self._queued > _STREAM_HIGH_BYTES:
                self._pipe(fd).pause_reading()
            return
        self.seen += len(data)
        kept = self.kept[fd]
        room = self.max_bytes - len(kept)
        kept += data[:room]
        if len(data) > room:
            self.truncated = True
            # scancel that asks a question of an empty stdin prints it 100 MB/s for ever.
            if self.seen > 2 * self.max_bytes + _OVERRUN_BYTES:
                self.signal(signal.SIGKILL)

    def taken(self, count: int) -> None:
        """A stream's consumer took ``count`` bytes: read on."""
        self._queued -= count
        if self._queued <= _STREAM_HIGH_BYTES // 2 and 1 in self._pipes:
            self._pipe(1).resume_reading()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._pipes.discard(fd)
        if not self._pipes:
            self.drained.set()
            if self.chunks is not None:
                self.chunks.put_nowait(_ENDED)

    def process_exited(self) -> None:
        self.exited.set()

    def returncode(self) -> int | None:
        return None if self._transport is None else self._transport.get_returncode()

    def feed(self, stdin: bytes) -> None:
        pipe = None if self._transport is None else self._transport.get_pipe_transport(0)
        if isinstance(pipe, asyncio.WriteTransport):
            pipe.write(stdin)
            pipe.close()

    def signal(self, number: int) -> None:
        """Signal the whole group: a shell's own children as well."""
        if self._transport is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._transport.get_pid(), number)

    async def stop(self, grace_s: float) -> None:
        """TERM, then KILL after ``grace_s``; one that survives even that is left behind.

        One that is being started just now is waited for: it may run before asyncio says so.
        """
        await _wait(self.started, grace_s)
        if self._transport is None:
            return
        try:
            if not self.exited.is_set():
                self.signal(signal.SIGTERM)
                await _wait(self.exited, grace_s)
        finally:
            if not (self.exited.is_set() and self.drained.is_set()):
                self.signal(signal.SIGKILL)
        await _wait(self.exited, _DRAIN_S)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _pipe(self, fd: int) -> asyncio.ReadTransport:
        assert self._transport is not None
        pipe = self._transport.get_pipe_transport(fd)
        assert isinstance(pipe, asyncio.ReadTransport)
        return pipe


async def _wait(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


class LocalRunner:
    """Runs commands and reads files on this machine. ``host`` other than None is refused.

    A child gets ``/dev/null`` as stdin, a cleaned environment and a session of its own, so that
    a time limit ends all of it. Output past ``max_bytes`` (stdout and stderr each) is read and
    dropped; a child that goes on for long after that is killed, and then ``rc`` tells the signal.
    Close it with :meth:`aclose`, or use it as ``async with``.
    """

    others_may_read = True
    """Another process of slurmtop finds the same in a file: nothing is recorded or counted here."""

    def __init__(
        self, clock: Clock, environ: Mapping[str, str], *, file_timeout_s: float = 5.0
    ) -> None:
        self._clock = clock
        self._environ = child_environment(environ)
        self._files = FileDoor(clock, self._environ, file_timeout_s)
        self._children: set[_Child] = set()

    async def __aenter__(self) -> "LocalRunner":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End every child that is still running, within about a second and a half."""
        children = tuple(self._children)
        await asyncio.gather(*(child.stop(_QUIT_GRACE_S) for child in children))
        await self._files.aclose()

    async def run(self, command: Command) -> Completed:
        started_at = self._clock.now()
        started = self._clock.monotonic()
        child = _Child(command.max_bytes)
        in_time = True
        try:
            await self._start(command, child, asyncio.subprocess.PIPE)
            child.feed(command.stdin)
            in_time = await _wait(child.exited, command.timeout_s)
            if in_time:
                await _wait(child.drained, _DRAIN_S)
            else:
                await child.stop(_TERM_GRACE_S)
        finally:
            await self._finish(child)
        return Completed(
            rc=child.returncode() if in_time else None,
            stdout=bytes(child.kept[1]),
            stderr=bytes(child.kept[2]),
            started_at=started_at,
            took_s=self._clock.monotonic() - started,
            truncated=child.truncated,
        )

    async def stream(self, command: Command) -> AsyncIterator[bytes]:
        """The stdout of ``command`` in chunks as they come, until it ends or you stop asking.

        ``timeout_s`` is the longest silence; stderr is dropped and ``max_bytes`` has no meaning,
        because nothing is kept: the child waits while nobody takes its output.
        """
        chunks: asyncio.Queue[bytes] = asyncio.Queue()
        child = _Child(command.max_bytes, chunks)
        try:
            await self._start(command, child, asyncio.subprocess.DEVNULL)
            child.feed(command.stdin)
            while True:
                try:
                    async with asyncio.timeout(command.timeout_s):
                        chunk = await chunks.get()
                except TimeoutError:
                    return
                if chunk == _ENDED:
                    return
                child.taken(len(chunk))
                yield chunk
        finally:
            await self._finish(child)

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        _refuse_host(host)
        return await self._files.read(path, offset, length)

    async def stat(self, path: str, host: str | None = None) -> FileStat:
        _refuse_host(host)
        return await self._files.stat(path)

    async def list(self, path: str, host: str | None = None) -> tuple[str, ...]:
        _refuse_host(host)
        return await self._files.list(path)

    async def _start(self, command: Command, child: _Child, stderr: int) -> None:
        options: dict[str, Any] = {"start_new_session": True, "env": self._environ}
        pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        self._children.add(child)
        try:
            _refuse_host(command.host)
            await asyncio.get_running_loop().subprocess_exec(
                lambda: child,
                *command.argv,
                stdin=pipe if command.stdin else null,
                stdout=pipe,
                stderr=stderr,
                **options,
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise RunnerError(_why_not_started(command.argv, error)) from error
        finally:
            child.started.set()

    async def _finish(self, child: _Child) -> None:
        try:
            await child.stop(_QUIT_GRACE_S)
        finally:
            child.close()
            self._children.discard(child)


def _refuse_host(host: str | None) -> None:
    if host is not None:
        raise RunnerError(f"{host}: this runner reaches the login node only.")


def _why_not_started(argv: tuple[str, ...], error: Exception) -> str:
    program = argv[0] if argv else "(no program)"
    if not isinstance(error, OSError):
        return f"{program} could not be started: {error}."
    match error.errno:
        case errno.ENOENT:
            return f"{program} was not found on this machine."
        case errno.EACCES | errno.EPERM:
            return f"{program} could not be started: this user may not run it."
        case errno.EAGAIN:
            return f"{program} could not be started: this machine allows no more processes."
        case errno.ENOMEM:
            return f"{program} could not be started: this machine is out of memory."
        case errno.EMFILE | errno.ENFILE:
            return f"{program} could not be started: too many open files."
        case errno.E2BIG:
            return f"{program} could not be started: the list of arguments is too long."
        case _:
            return f"{program} could not be started: {error.strerror or error}."
