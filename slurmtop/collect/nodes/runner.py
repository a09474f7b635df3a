"""The runner that knows nodes: a command with a host runs there, by whichever way gets in."""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Iterable, Sequence

from slurmtop.collect.clock import cancel_and_wait, spawn, within
from slurmtop.collect.nodes.answer import Answer, cut_off, never_ran
from slurmtop.collect.nodes.choice import Choice, summed_up
from slurmtop.collect.nodes.expected import Expected
from slurmtop.collect.nodes.here import HereWay
from slurmtop.collect.nodes.remote import NodeWay, RemoteProcess
from slurmtop.collect.nodes.script import Unframer, framed, new_mark
from slurmtop.collect.nodes.way_memory import WayMemory
from slurmtop.collect.streams import closing
from slurmtop.model.ports import (
    Clock,
    Command,
    Completed,
    FileStat,
    NodeUnreachable,
    Runner,
    RunnerError,
)
from slurmtop.model.reach import Reach, Way
from slurmtop.model.snapshot import Failure

#: The node ends a command that is out of time by itself (and two seconds later for sure); only
#: then the channel is left.
GRACE_S = 5.0
_SWEEP_S = 15.0
_CLOSE_S = 3.0
#: What the kernel takes as one word, in base64.
_MOST_STDIN_BYTES = 90 * 1024
_WITH_STDIN = 'b=$1; shift; printf %s "$b" | base64 -d | "$@"'
#: Exit statuses of ``timeout``: ended in time, and killed for not ending.
_OUT_OF_TIME = frozenset({124, 137})


class NodeRunner:
    """Any runner of this machine, and commands on nodes beside it.

    ``make_ways`` builds the ways onto nodes, from the first to try to the last, when the first
    command for a node comes. ``closed`` is why nothing is tried, where the settings forbid it.
    A command with a host raises ``NodeUnreachable`` where it cannot get in, and where its answer
    was cut off: half an answer is never given out. Close it with :meth:`aclose`.
    """

    def __init__(
        self,
        local: Runner,
        make_ways: Callable[[], Sequence[NodeWay]],
        clock: Clock,
        *,
        expected: Expected | None = None,
        here: HereWay | None = None,
        memory: WayMemory | None = None,
        closed: Callable[[], Failure | None] = lambda: None,
    ) -> None:
        self._local = local
        self._make_ways = make_ways
        self._clock = clock
        self._expected = Expected() if expected is None else expected
        self._here = here
        self._memory = memory
        self._closed = closed
        self._ways: dict[Way, NodeWay] = {}
        self._choice = Choice(())
        self._made = False
        self._probing = asyncio.Lock()
        self._sweeping: asyncio.Task[None] | None = None
        self._rest: set[asyncio.Task[None]] = set()

    @property
    def way(self) -> Way | None:
        """How nodes are reached at present; None while that is not known."""
        return self._choice.proven(self._clock.monotonic())

    def reach(self, host: str) -> Reach | None:
        """What came of the last tries to get onto ``host``; None before the first."""
        return self._choice.reach(host)

    def expect(self, job: str, hosts: Iterable[str]) -> None:
        """``job`` (its raw number) runs on ``hosts``, and somebody looks there."""
        hosts = tuple(hosts)
        before = self._expected.hosts_of(job)
        self._expected.expect(job, hosts)
        if not set(hosts) <= set(before):
            # Who was refused for want of a job on a node may have one there now.
            for way in self._ways.values():
                for host in hosts:
                    way.forget(host)

    def forget(self, job: str) -> None:
        """Nobody looks at ``job`` any more."""
        self._choice.forget(self._expected.hosts_of(job))
        self._expected.forget(job)

    def try_again(self, host: str) -> None:
        """Somebody asks for ``host`` now: an earlier refusal does not stand in the way."""
        for way in self._ways.values():
            way.forget(host)

    async def close_idle(self) -> None:
        """Let go of connections and steps that nobody used for a while."""
        for way in self._ways.values():
            await way.close_idle()

    async def aclose(self) -> None:
        """End everything of ours on every node."""
        if self._sweeping is not None:
            await cancel_and_wait(self._sweeping)
        ways = [*self._ways.values(), *([self._here] if self._here is not None else [])]
        await asyncio.gather(*(way.aclose() for way in ways))
        if self._rest:
            await asyncio.wait(tuple(self._rest), timeout=_CLOSE_S)
            await cancel_and_wait(*self._rest)

    async def run(self, command: Command) -> Completed:
        host = command.host
        if host is None:
            return await self._local.run(command)
        mark = new_mark()
        script = framed(_with_stdin(command), mark, timeout_s=command.timeout_s)
        way, process = await self._start(host, script)
        started_at, started = self._clock.now(), self._clock.monotonic()
        answer = Answer(Unframer(mark), command.max_bytes)
        in_time = True
        try:
            limit_s = command.timeout_s + GRACE_S
            await within(self._clock, answer.read(process), limit_s, name=f"answer of {host}")
        except TimeoutError:
            in_time = False
        except NodeUnreachable as error:
            self._choice.failed(way, host, error.failure, self._clock.monotonic())
            raise
        finally:
            self._let_go(process)
        took_s = self._clock.monotonic() - started
        if in_time and not answer.whole:
            raise NodeUnreachable(host, self._cut(way, host, answer, process))
        ended_there = answer.rc in _OUT_OF_TIME and took_s >= command.timeout_s
        return Completed(
            rc=answer.rc if in_time and not ended_there else None,
            stdout=bytes(answer.stdout),
            stderr=answer.stderr[: command.max_bytes],
            started_at=started_at,
            took_s=took_s,
            truncated=answer.truncated,
        )

    async def stream(self, command: Command) -> AsyncIterator[bytes]:
        """As every runner: chunks as they come, ``timeout_s`` is the longest silence.

        What runs on the node is ended there when the reader stops.
        """
        host = command.host
        if host is None:
            async with closing(self._local.stream(command)) as inner:
                async for chunk in inner:
                    yield chunk
            return
        mark = new_mark()
        way, process = await self._start(host, framed(_with_stdin(command), mark))
        answer = Answer(Unframer(mark, eager=True), 0)
        name = f"stream of {host}"
        try:
            async with closing(process.chunks()) as chunks:
                while not answer.whole:
                    try:
                        item = await within(
                            self._clock, _next(chunks), command.timeout_s, name=name
                        )
                    except TimeoutError:
                        return
                    if item is None:
                        break
                    self._choice.answered(way, host, self._clock.monotonic())
                    if payload := answer.unframer.feed(item):
                        yield payload
            if not answer.whole:
                raise NodeUnreachable(host, self._cut(way, host, answer, process))
        except NodeUnreachable as error:
            self._choice.failed(way, host, error.failure, self._clock.monotonic())
            raise
        finally:
            await asyncio.shield(self._let_go(process))

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        _refuse_files(host)
        return await self._local.read(path, offset, length)

    async def stat(self, path: str, host: str | None = None) -> FileStat:
        _refuse_files(host)
        return await self._local.stat(path)

    async def list(self, path: str, host: str | None = None) -> tuple[str, ...]:
        _refuse_files(host)
        return await self._local.list(path)

    async def _start(self, host: str, script: bytes) -> tuple[Way, RemoteProcess]:
        """The script, running on ``host``. Where no way is proven yet, one try at a time."""
        why = self._closed()
        if why is not None:
            raise NodeUnreachable(host, why)
        await self._make()
        if self._here is not None and self._here.is_here(host):
            return await self._by(self._here, host, script)
        tried: dict[Way, Failure] = {}
        while True:
            way, proven = self._choice.next(host, tried, self._clock.monotonic())
            if way is None:
                raise NodeUnreachable(host, summed_up(host, tuple(tried.items())))
            if proven:
                found = await self._try(way, host, script, tried)
            else:
                async with self._probing:
                    # Whoever was before us may have found it out.
                    way, proven = self._choice.next(host, tried, self._clock.monotonic())
                    if way is None or proven:
                        continue
                    found = await self._try(way, host, script, tried)
            if found is not None:
                return found

    async def _try(
        self, way: Way, host: str, script: bytes, tried: dict[Way, Failure]
    ) -> tuple[Way, RemoteProcess] | None:
        try:
            return await self._by(self._ways[way], host, script)
        except NodeUnreachable as error:
            tried[way] = error.failure
            return None

    async def _by(self, way: NodeWay, host: str, script: bytes) -> tuple[Way, RemoteProcess]:
        try:
            process = await way.start(host, script)
        except NodeUnreachable as error:
            self._choice.failed(way.way, host, error.failure, self._clock.monotonic())
            raise
        new = self._choice.answered(way.way, host, self._clock.monotonic())
        if new and self._memory is not None and len(self._ways) > 1:
            kept = asyncio.to_thread(self._memory.keep, way.way, self._clock.now())
            self._keep(spawn(kept, name="remember the way onto nodes"))
        return way.way, process

    async def _make(self) -> None:
        """Build the ways, once, with the one in front that answered the last time."""
        if self._made:
            return
        self._ways = {way.way: way for way in self._make_ways()}
        self._made = True
        self._choice = Choice(tuple(self._ways))
        self._sweeping = spawn(self._sweep(), name="close what is idle on nodes")
        # What was chosen by the settings is no finding.
        if self._memory is not None and len(self._ways) > 1:
            async with self._probing:
                known = await asyncio.to_thread(self._memory.load, self._clock.now())
                if known is not None:
                    self._choice.prefer(known)

    async def _sweep(self) -> None:
        while True:
            await self._clock.sleep(_SWEEP_S)
            await self.close_idle()

    def _cut(self, way: Way, host: str, answer: Answer, process: RemoteProcess) -> Failure:
        if answer.unframer.begun:
            return cut_off(host, process.stderr)
        failure = never_ran(host, answer.before, process.stderr)
        self._choice.failed(way, host, failure, self._clock.monotonic())
        return failure

    def _let_go(self, process: RemoteProcess) -> asyncio.Task[None]:
        """End it in a task of its own: nobody waits for a process that cannot be ended."""
        return self._keep(spawn(process.close(), name="end a script on a node"))

    def _keep(self, task: asyncio.Task[None]) -> asyncio.Task[None]:
        self._rest.add(task)
        task.add_done_callback(self._rest.discard)
        return task


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)


def _with_stdin(command: Command) -> tuple[str, ...]:
    if not command.stdin:
        return command.argv
    if len(command.stdin) > _MOST_STDIN_BYTES:
        raise RunnerError(f"{command.host}: too much input for a command on a node.")
    data = base64.b64encode(command.stdin).decode("ascii")
    return ("/bin/sh", "-c", _WITH_STDIN, "slurmtop-stdin", data, *command.argv)


def _refuse_files(host: str | None) -> None:
    if host is not None:
        raise RunnerError(f"{host}: files are read on the login node only, nodes by commands.")
