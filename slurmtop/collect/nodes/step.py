"""One held-open step of a job: an ``srun`` whose tasks are agents that serve requests."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping

from slurmtop.collect.child import ended, keep_tail, let_go, start_child
from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.nodes import agent
from slurmtop.collect.nodes.expected import ExpectedJob
from slurmtop.collect.nodes.step_failures import explain_step, explain_step_gone, lacks
from slurmtop.model.ports import Clock, NodeUnreachable
from slurmtop.model.snapshot import Failure, Trouble

#: Slurm creates a step in less than a second or says why not; a node may be slow to start it.
START_TIMEOUT_S = 15.0
#: It takes 30 ms where nothing holds it up; one that is ended harder shows as cancelled.
_CLOSE_WAIT_S = 4.0
_TERM_WAIT_S = 0.7
_BLOCK = 64 * 1024
#: What a reader may leave lying before its request is ended.
_MOST_WAITING_BYTES = 64 * 1024 * 1024


class StepProcess:
    """One request on one node (a ``RemoteProcess``)."""

    def __init__(self, step: "HeldStep", host: str, number: int) -> None:
        self.host = host
        self.number = number
        self._step = step
        self._waiting: asyncio.Queue[bytes | NodeUnreachable | None] = asyncio.Queue()
        self._waiting_bytes = 0
        self._over = asyncio.Event()

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            item = await self._waiting.get()
            if item is None:
                return
            if isinstance(item, NodeUnreachable):
                raise item
            self._waiting_bytes -= len(item)
            yield item

    @property
    def stderr(self) -> bytes:
        return self._step.stderr

    async def close(self) -> None:
        await self._step.end(self)

    def take(self, data: bytes) -> bool:
        """Keep a part of its output; False where nobody reads and there is too much of it."""
        self._waiting_bytes += len(data)
        if self._waiting_bytes > _MOST_WAITING_BYTES:
            return False
        self._waiting.put_nowait(data)
        return True

    def finish(self, why: Failure | None = None) -> None:
        """No more comes; with ``why`` it was cut off."""
        if not self._over.is_set():
            self._over.set()
            item = None if why is None else NodeUnreachable(self.host, why)
            self._waiting.put_nowait(item)

    async def over(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._over.wait()


class HeldStep:
    """``open`` starts it; it ends with its stdin, with the job, or at its own time limit.

    ``refusal`` is why it could not be made or has ended, None while it serves.
    """

    def __init__(self, job: ExpectedJob, argv: tuple[str, ...], mark: str, clock: Clock) -> None:
        self.on_end: Callable[[int | None, str], None] | None = None
        self.job = job
        self.argv = argv
        self.opened_at = clock.monotonic()
        self.used_at = self.opened_at
        self.refusal: Failure | None = None
        self._clock = clock
        self._reader = agent.AgentReader(mark)
        self._ready: set[str] = set()
        self._unfit: dict[str, Failure] = {}
        self._news = asyncio.Event()
        self._requests: dict[int, StepProcess] = {}
        self._number = 0
        self._stderr = bytearray()
        self._child: asyncio.subprocess.Process | None = None
        self._transport: asyncio.SubprocessTransport | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = False

    @property
    def stderr(self) -> bytes:
        return bytes(self._stderr)

    @property
    def busy(self) -> bool:
        return bool(self._requests)

    async def open(self, environ: Mapping[str, str]) -> None:
        """Start srun; :class:`OSError` or ValueError where that is not possible."""
        self._child, self._transport = await start_child(
            *self.argv, stdin=asyncio.subprocess.PIPE, env=environ
        )
        name = f"step of job {self.job.job}"
        errors = spawn(keep_tail(self._child.stderr, self._stderr), name=f"{name}: stderr")
        self._tasks = [
            errors,
            spawn(self._read_stdout(errors), name=name),
            spawn(self._ping(), name=f"{name}: ping"),
        ]

    async def ready(self, host: str) -> None:
        """Wait until the agent on ``host`` serves; ``NodeUnreachable`` where it never does."""
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                while host not in self._ready:
                    why = self._unfit.get(host) or self.refusal
                    if why is not None:
                        raise NodeUnreachable(host, why)
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            sentence = (
                f"srun got no answer from {host} within {START_TIMEOUT_S:.0f} s: Slurm has not"
                " started our step of the job there."
            )
            raise NodeUnreachable(
                host, Failure(Trouble.TIMEOUT, sentence, self._words(), 60.0)
            ) from None

    def start(self, host: str, script: bytes) -> StepProcess:
        """Send one request; ``NodeUnreachable`` where the step has ended."""
        if self.refusal is not None:
            raise NodeUnreachable(host, self.refusal)
        self._number += 1
        process = StepProcess(self, host, self._number)
        self._requests[self._number] = process
        self._send(agent.run_line(self._number, host, script))
        self.used_at = self._clock.monotonic()
        return process

    async def end(self, process: StepProcess) -> None:
        """End a request and what it started; returns within about a second."""
        if self._requests.get(process.number) is process:
            if self.refusal is None:
                self._send(agent.kill_line(process.number, process.host))
                await process.over(1.0)
            self._requests.pop(process.number, None)
            process.finish()
        self.used_at = self._clock.monotonic()

    async def close(self, why: Failure) -> None:
        """End the step: agents end with their stdin, and what they started with them.

        Requests that still run are told ``why``. srun that does not end by itself is ended.
        """
        if self._closed:
            return
        self._closed = True
        self._give_up(why)
        child = self._child
        if child is None:
            return
        try:
            if child.stdin is not None:
                child.stdin.close()
            if await ended(child, _CLOSE_WAIT_S):
                return
            # It ends the step on all nodes before it goes.
            self._signal(signal.SIGTERM)
            await ended(child, _TERM_WAIT_S)
        finally:
            if child.returncode is None:
                self._signal(signal.SIGKILL)
            self._tell_end()
            await cancel_and_wait(*self._tasks)
            if self._transport is not None:
                await let_go(child, self._transport)

    async def _read_stdout(self, errors: "asyncio.Task[None]") -> None:
        assert self._child is not None
        assert self._child.stdout is not None
        while chunk := await self._child.stdout.read(_BLOCK):
            for said in self._reader.feed(chunk):
                self._hear(said)
        await ended(self._child, _CLOSE_WAIT_S)
        await asyncio.wait((errors,), timeout=_TERM_WAIT_S)
        rc = self._child.returncode
        self._tell_end()
        begun = bool(self._ready)
        words = self.stderr
        job = self.job.job
        self._give_up(explain_step_gone(job, rc, words) if begun else explain_step(job, rc, words))

    def _hear(self, said: agent.Said) -> None:
        match said:
            case agent.Hello(host):
                self._ready.add(host)
                self._news.set()
            case agent.Lacks(host, tool):
                self._unfit[host] = lacks(host, tool)
                self._news.set()
            case agent.Output(number, data):
                process = self._requests.get(number)
                if process is not None and not process.take(data):
                    self._send(agent.kill_line(number, process.host))
                    self._requests.pop(number)
                    sentence = f"{process.host} prints more than anybody reads here: it was ended."
                    process.finish(Failure(Trouble.OTHER, sentence))
            case agent.Ended(number):
                process = self._requests.pop(number, None)
                if process is not None:
                    process.finish()
                self.used_at = self._clock.monotonic()

    async def _ping(self) -> None:
        while self.refusal is None:
            await self._clock.sleep(agent.PING_S)
            self._send(agent.PING)

    def _give_up(self, why: Failure) -> None:
        if self.refusal is None:
            self.refusal = why
        for process in self._requests.values():
            process.finish(why)
        self._requests.clear()
        self._news.set()

    def _tell_end(self) -> None:
        if self.on_end is not None and self._child is not None:
            rc = self._child.returncode
            self.on_end(rc, "" if rc == 0 else "ended" if rc is None else f"exit {rc}")
            self.on_end = None

    def _send(self, line: bytes) -> None:
        child = self._child
        if child is not None and child.stdin is not None and not child.stdin.is_closing():
            child.stdin.write(line)

    def _words(self) -> str:
        return self.stderr.decode("utf-8", "replace")[-2_000:]

    def _signal(self, number: int) -> None:
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child.pid, number)
