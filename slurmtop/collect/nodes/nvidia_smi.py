"""``nvidia-smi`` on a node: a stream of rounds while somebody looks, or one answer.

A driver that does not know a field refuses the whole query: then it is asked for the others, and
that is remembered. A driver that hangs is left alone for minutes, and no second process is started
while the first one is there.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

from slurmtop.collect.nodes.channel import Channel, Silence
from slurmtop.collect.nodes.gpu_script import (
    FIRST_ANSWER_S,
    list_command,
    once_command,
    probe_command,
    state_command,
    stream_command,
)
from slurmtop.collect.nodes.host_memory import HostMemory
from slurmtop.model.gpu import Answer, GpuProcess, NodeGpus
from slurmtop.model.ports import Clock, Completed, NodeUnreachable, Runner, RunnerError
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.text import visible
from slurmtop.parse.gpu.compute_apps import parse_compute_apps
from slurmtop.parse.gpu.failures import explain_gpu_failure
from slurmtop.parse.gpu.fields import fields_after_refusal
from slurmtop.parse.gpu.node_gpus import in_the_way
from slurmtop.parse.gpu.node_script import (
    NodeAnswer,
    OpenTool,
    Part,
    parse_inside,
    parse_node_answer,
    said,
)
from slurmtop.parse.gpu.nvidia_smi import PROGRAM, read_query
from slurmtop.parse.gpu.nvidia_smi_list import parse_list
from slurmtop.parse.gpu.rounds import Lines, Rounds, smi_key
from slurmtop.parse.nic import NicLook, parse_nics
from slurmtop.triage.gpus import persistence_hint

#: A stream that was good and is silent for so long has a driver that hangs, or lost its node.
SILENT_S = 30.0
#: All rows of a round come together; after this long nothing more belongs to it.
_SETTLE_S = 0.5
#: A driver that starts one GPU after the other for a first answer pauses between them.
_SLOW_SETTLE_S = 5.0
_WAIT_S = 5.0
#: A first answer that takes longer means that the driver starts the GPUs for it: no stream then.
SLOW_S = 3.0
_BROKEN_RETRY_S = 10.0
_NODE_RETRY_S = 60.0


@dataclass(frozen=True, slots=True)
class Beside:
    """What a look tells beside the values of the GPUs. ``processes`` None: nobody asked."""

    nics: NicLook | None = None
    inside: str | None = None
    inside_known: bool = False
    processes: tuple[GpuProcess, ...] | None = None


async def stream_rounds(
    runner: Runner, clock: Clock, host: str, memory: HostMemory
) -> AsyncGenerator[NodeGpus, None]:
    """Every round as it comes; ends after a failure, which is the last one told.

    It also ends after the first round of a driver that is slow to answer (``took_s``): that one
    is asked seldom. Raises :class:`NodeUnreachable`.
    """
    memory.only = memory.lost = ()
    while True:
        stream = _Stream(runner, clock, host, memory)
        again = False
        lost: NodeGpus | None = None
        try:
            async with aclosing(stream.rounds()) as rounds:
                async for node in rounds:
                    if node.answer is Answer.BAD_FIELD and _drop_field(memory, node):
                        again = True
                        break
                    if _hides_others(node, memory):
                        lost = node
                        break
                    yield node
        finally:
            await stream.close()
        if lost is not None:
            again = await _find_others(runner, host, memory, lost)
            if not again:
                yield lost
        if not again:
            return


class _Stream:
    def __init__(self, runner: Runner, clock: Clock, host: str, memory: HostMemory) -> None:
        self._runner = runner
        self._clock = clock
        self._host = host
        self._memory = memory
        self._fields = memory.fields
        command = stream_command(host, self._fields, memory.open_tools, only=memory.only)
        self._channel = Channel(runner, clock, command)
        self._rounds = Rounds(smi_key)
        self._lines = Lines()
        self._tool: OpenTool | None = None
        self._ended = False
        self._begun = clock.monotonic()
        self._took_s: float | None = None
        self._told = False

    async def close(self) -> None:
        """End it; what may still be there is remembered."""
        if self._tool is not None and not self._ended:
            self._memory.keep((self._tool,))
        await self._channel.close()

    async def rounds(self) -> AsyncGenerator[NodeGpus, None]:
        silent_s = 0.0
        while not self._ended:
            limit_s = self._limit_s()
            got = await self._channel.read(limit_s)
            if got is Silence.ENDED:
                if not self._ended:
                    yield self._broken()
                return
            if isinstance(got, bytes):
                silent_s = 0.0
                nodes = [node for line in self._lines.feed(got) for node in self._line(line)]
            else:
                silent_s += limit_s
                nodes = [self._node(whole) for whole in self._rounds.settle()]
                if not nodes and silent_s >= (SILENT_S if self._told else FIRST_ANSWER_S):
                    yield await self._silent(silent_s)
                    return
            for node in nodes:
                yield node
            if self._told and self._took_s is not None and self._took_s > SLOW_S:
                return

    def _limit_s(self) -> float:
        if not self._rounds.pending:
            return _WAIT_S
        slow = self._took_s is not None and self._took_s > SLOW_S
        return _SLOW_SETTLE_S if slow else _SETTLE_S

    def _line(self, line: bytes) -> list[NodeGpus]:
        one = said(line)
        if one is None:
            if not self._told and self._tool is not None and smi_key(line) is not None:
                self._took_s = self._clock.monotonic() - self._begun
            return [self._node(whole) for whole in self._rounds.add(line)]
        if one.word == "seen":
            self._memory.seen = frozenset(one.rest)
        elif one.word == "pid" and one.tools:
            self._tool, self._begun = one.tools[0], self._clock.monotonic()
            self._memory.open_tools = ()
        elif one.word == "open":
            self._ended = True
            self._memory.open_tools = one.tools
            return [in_the_way(self._host, one.tools)]
        elif one.word == "end" and self._tool is not None:
            self._ended = True
            return self._over(one.number)
        return []

    def _node(self, whole: bytes) -> NodeGpus:
        took_s = None if self._told else self._took_s
        self._told = True
        read = read_query(self._host, self._fields, 0, whole)
        node = replace(read, took_s=took_s, lost=read.lost or self._memory.lost)
        if took_s is not None:
            self._memory.took_s = took_s
            self._memory.hint(persistence_hint(node))
        return node

    def _over(self, rc: int | None) -> list[NodeGpus]:
        """The tool ended by itself: with an error, or somebody ended it."""
        rest = self._rounds.rest()
        if rc in (130, 137, 143):
            return [self._broken()]
        if rc == 0:
            return [self._node(rest)] if not self._told else []
        return [read_query(self._host, self._fields, rc, rest)]

    def _broken(self) -> NodeGpus:
        where = visible(self._host)
        says = f"nvidia-smi on {where} was ended from outside; it is started again."
        failure = Failure(Trouble.OTHER, says, retry_after_s=_BROKEN_RETRY_S)
        return NodeGpus(host=self._host, answer=Answer.OTHER, failure=failure)

    async def _silent(self, silent_s: float) -> NodeGpus:
        """Nothing came: is it the driver, or is it the node?"""
        await self.close()
        state = state_command(self._host, self._memory.open_tools)
        try:
            done = await self._runner.run(state)
        except NodeUnreachable:
            raise
        except RunnerError as error:
            failure = Failure(Trouble.LOCAL, f"{error}", retry_after_s=_NODE_RETRY_S)
            return NodeGpus(host=self._host, answer=Answer.OTHER, failure=failure)
        answer = parse_node_answer(done.stdout)
        if not answer.whole or self._tool is None:
            return dead_node(self._host, silent_s)
        self._memory.open_tools = answer.open_tools
        why, failure = explain_gpu_failure(PROGRAM, self._host, None, b"", elapsed_s=silent_s)
        return NodeGpus(host=self._host, answer=why, failure=failure, took_s=silent_s)


def _hides_others(node: NodeGpus, memory: HostMemory) -> bool:
    """Did one lost card take the rows of all others along, for the first time?"""
    return node.answer is Answer.GPU_LOST and not node.samples and not memory.only


async def _find_others(runner: Runner, host: str, memory: HostMemory, lost: NodeGpus) -> bool:
    """Learn which GPUs are beside a lost card; False where that cannot be told.

    Raises :class:`NodeUnreachable`.
    """
    try:
        done = await runner.run(list_command(host, memory.open_tools))
    except NodeUnreachable:
        raise
    except RunnerError:
        return False
    answer = parse_node_answer(done.stdout)
    memory.learn(answer)
    part = answer.parts.get("list")
    if part is None or part.rc != 0:
        return False
    listed = parse_list(host, part.rc, part.text)
    memory.only = tuple(gpu.uuid for gpu in listed.samples if gpu.uuid)
    memory.lost = listed.lost or lost.lost
    return bool(memory.only)


def _drop_field(memory: HostMemory, node: NodeGpus) -> bool:
    raw = node.failure.raw if node.failure is not None else ""
    fewer = fields_after_refusal(memory.fields, raw.encode())
    if fewer is None:
        return False
    memory.fields = fewer
    return True


def dead_node(host: str, waited_s: float) -> NodeGpus:
    """The node itself gave nothing, whatever its driver does."""
    says = f"{visible(host)} does not answer: nothing came from it within {waited_s:.0f} s."
    failure = Failure(Trouble.TIMEOUT, says, retry_after_s=_NODE_RETRY_S)
    return NodeGpus(host=host, answer=Answer.UNREACHABLE, failure=failure)


async def ask_once(
    runner: Runner,
    clock: Clock,
    host: str,
    memory: HostMemory,
    *,
    timeout_s: float = FIRST_ANSWER_S,
) -> tuple[NodeGpus, Beside]:
    """One whole look at the GPUs of ``host``. Raises :class:`NodeUnreachable`.

    ``timeout_s`` bounds each of the few tries that unknown fields may cost.
    """
    memory.only = memory.lost = ()
    while True:
        fields = memory.fields
        command = once_command(
            host, fields, memory.open_tools, only=memory.only, timeout_s=timeout_s
        )
        try:
            done = await runner.run(command)
        except NodeUnreachable:
            raise
        except RunnerError as error:
            failure = Failure(Trouble.LOCAL, str(error), retry_after_s=_NODE_RETRY_S)
            return NodeGpus(host=host, answer=Answer.OTHER, failure=failure), Beside()
        answer = parse_node_answer(done.stdout)
        memory.learn(answer)
        node = _queried(host, fields, done, answer, command.timeout_s)
        if node.answer is Answer.BAD_FIELD and _drop_field(memory, node):
            continue
        if _hides_others(node, memory) and await _find_others(runner, host, memory, node):
            continue
        beside = _beside(answer)
        node = replace(node, lost=node.lost or memory.lost)
        if node.samples:
            memory.took_s = node.took_s
            memory.hint(persistence_hint(node))
        if node.answered and beside.processes is not None:
            node = replace(node, processes=beside.processes)
        return node, beside


def _queried(
    host: str, fields: tuple[str, ...], done: Completed, answer: NodeAnswer, waited_s: float
) -> NodeGpus:
    if answer.open_tools:
        return in_the_way(host, answer.open_tools)
    query = answer.parts.get("query")
    if query is None:
        return dead_node(host, waited_s) if done.timed_out else _no_script(host, done)
    took_s = done.took_s if query.rc == 0 else waited_s
    return read_query(host, fields, query.rc, query.text, elapsed_s=took_s)


def _no_script(host: str, done: Completed) -> NodeGpus:
    answer, failure = explain_gpu_failure("/bin/sh", host, done.rc, done.stdout, done.stderr)
    return NodeGpus(host=host, answer=answer, failure=failure)


async def probe(runner: Runner, host: str, memory: HostMemory, *, apps: bool) -> Beside:
    """Ports, cgroup and with ``apps`` the processes on the GPUs; what failed is None.

    Raises :class:`NodeUnreachable`.
    """
    try:
        done = await runner.run(probe_command(host, memory.open_tools, apps=apps, only=memory.only))
    except NodeUnreachable:
        raise
    except RunnerError:
        return Beside()
    answer = parse_node_answer(done.stdout)
    memory.learn(answer)
    return _beside(answer)


def _beside(answer: NodeAnswer) -> Beside:
    nics, cgroup = answer.parts.get("nics"), answer.parts.get("cgroup")
    apps = answer.parts.get("apps")
    return Beside(
        nics=None if nics is None else parse_nics(nics.text),
        inside=None if cgroup is None else parse_inside(cgroup.text),
        inside_known=cgroup is not None and bool(cgroup.text.strip()),
        processes=None if apps is None else _processes(apps),
    )


def _processes(apps: Part) -> tuple[GpuProcess, ...] | None:
    """None where the tool failed: then nothing is known of them."""
    return parse_compute_apps(apps.text).rows if apps.rc == 0 else None
