"""DCGM's counters by ``dcgmi dmon``: SM activity, tensor cores, memory, links, the last Xid.

Counting has a price: the profiling counters serve one program at a time, and a job under Nsight
loses them. So they are asked for only where the node itself watches them already, or where the
settings say so. What is refused is not asked for again in this session.
"""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from slurmtop.collect.nodes.channel import Channel, Silence
from slurmtop.collect.nodes.gpu_script import dcgm_command
from slurmtop.collect.nodes.host_memory import ALL_IDS, PLAIN_IDS, WATCHED_IDS, HostMemory
from slurmtop.model.gpu import QUIET_ANSWERS, Answer, GpuSample
from slurmtop.model.ports import Clock, NodeUnreachable, Runner, RunnerError
from slurmtop.parse.gpu.dcgm import (
    newest,
    parse_discovery,
    parse_dmon,
    with_uuids,
    without_profiling,
)
from slurmtop.parse.gpu.failures import explain_gpu_failure
from slurmtop.parse.gpu.node_script import OpenTool, parse_node_answer, said
from slurmtop.parse.gpu.rounds import Lines, Rounds, dmon_key

PROGRAM = "dcgmi"
_SETTLE_S = 0.5
_WAIT_S = 5.0
SILENT_S = 30.0
#: A counter that is taken by another program may be free later; everything else stays as it is.
_AGAIN_S = 300.0


class DcgmMode(StrEnum):
    AUTO = "auto"
    """Profiling counters only where a dcgm-exporter beside a hostengine watches them already."""
    ON = "on"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class DcgmRound:
    """The GPUs of one round that could be named."""

    at: datetime
    samples: tuple[GpuSample, ...]


def wanted_ids(mode: DcgmMode, memory: HostMemory, clock: Clock) -> tuple[int, ...]:
    """What to ask DCGM for on a node now; nothing where it is not there or was refused."""
    if mode is DcgmMode.OFF or clock.monotonic() < memory.dcgm_at:
        return ()
    if memory.dcgm_ids is not None:
        return memory.dcgm_ids
    if mode is DcgmMode.ON:
        return (*PLAIN_IDS, *ALL_IDS)
    seen = memory.seen or frozenset()
    if "hostengine" not in seen:
        return ()
    return (*PLAIN_IDS, *WATCHED_IDS) if "exporter" in seen else PLAIN_IDS


async def dcgm_rounds(
    runner: Runner, clock: Clock, host: str, memory: HostMemory, ids: tuple[int, ...]
) -> AsyncGenerator[DcgmRound, None]:
    """Every round as it comes, the first without its rates. Ends where DCGM refuses or is silent:
    ``memory`` then knows what is left to ask for. Raises :class:`NodeUnreachable`."""
    stream = _Stream(runner, clock, host, memory, ids)
    try:
        async with aclosing(stream.rounds()) as rounds:
            async for one in rounds:
                yield one
    finally:
        await stream.close()


class _Stream:
    def __init__(
        self, runner: Runner, clock: Clock, host: str, memory: HostMemory, ids: tuple[int, ...]
    ) -> None:
        self._clock = clock
        self._host = host
        self._memory = memory
        self._ids = ids
        self._channel = Channel(runner, clock, dcgm_command(host, ids, memory.open_tools))
        self._rounds = Rounds(dmon_key)
        self._lines = Lines()
        self._tool: OpenTool | None = None
        self._part = ""
        self._list: list[bytes] = []
        self._talk: list[bytes] = []
        self._header = b""
        self._uuids: dict[int, str] = {}
        self._ended = False
        self._told = 0

    async def close(self) -> None:
        if self._tool is not None:
            self._memory.keep((self._tool,))
        await self._channel.close()

    async def rounds(self) -> AsyncGenerator[DcgmRound, None]:
        silent_s = 0.0
        while not self._ended:
            limit_s = _SETTLE_S if self._rounds.pending else _WAIT_S
            got = await self._channel.read(limit_s)
            if got is Silence.ENDED:
                return
            if isinstance(got, bytes):
                silent_s = 0.0
                whole = [one for line in self._lines.feed(got) for one in self._line(line)]
            else:
                silent_s += limit_s
                whole = self._rounds.settle()
                if silent_s >= SILENT_S:
                    self._memory.dcgm_at = self._clock.monotonic() + _AGAIN_S
                    return
            for text in whole:
                if (one := self._round(text)) is not None:
                    yield one

    def _line(self, line: bytes) -> list[bytes]:
        one = said(line)
        if one is None:
            return self._of_tool(line)
        if one.word == "seen":
            self._memory.seen = frozenset(one.rest)
        elif one.word == "open":
            self._ended = True
            self._memory.open_tools = one.tools
            self._memory.dcgm_at = self._clock.monotonic() + _AGAIN_S
        elif one.word == "part" and one.rest:
            self._part = one.rest[0]
        elif one.word == "pid":
            self._tool = one.tools[0] if one.tools else None
        elif one.word == "end":
            self._tool = None
            self._over(one.number)
        return []

    def _of_tool(self, line: bytes) -> list[bytes]:
        if self._part == "discovery":
            if len(self._list) < 2_000:
                self._list.append(line)
            return []
        if line.startswith(b"#"):
            self._header = line
            return []
        if dmon_key(line) is None:
            if line.strip() and len(self._talk) < 50:
                self._talk.append(line)
            return []
        return self._rounds.add(line)

    def _over(self, rc: int | None) -> None:
        if self._part == "discovery":
            self._uuids = parse_discovery(b"\n".join(self._list))
            return
        self._ended = True
        if not self._told or rc not in (0, 130, 137, 143):
            refused(self._memory, self._clock, self._host, self._ids, rc, b"\n".join(self._talk))

    def _round(self, text: bytes) -> DcgmRound | None:
        """None for the first round: rates are not known in it."""
        self._told += 1
        if self._told == 1:
            return None
        samples = _named(self._header + b"\n" + text, self._uuids)
        return DcgmRound(self._clock.now(), samples) if samples else None


def _named(table: bytes, uuids: dict[int, str]) -> tuple[GpuSample, ...]:
    rows = with_uuids(newest(parse_dmon(table).rows), uuids)
    return tuple(row for row in rows if row.uuid is not None)


def refused(
    memory: HostMemory,
    clock: Clock,
    host: str,
    ids: Iterable[int],
    rc: int | None,
    text: bytes,
) -> None:
    """Remember what DCGM on that node does not give; one sentence about counters that are missed.

    Without a hostengine or the program itself nothing is said: other sources are there.
    """
    answer, failure = explain_gpu_failure(PROGRAM, host, rc, text)
    wait = _AGAIN_S if failure.retry_after_s is None else failure.retry_after_s
    if answer is Answer.NO_PROFILING:
        memory.hint(failure.sentence)
        memory.dcgm_ids = without_profiling(tuple(ids))
        memory.dcgm_at = clock.monotonic()
        if memory.dcgm_ids:
            return
    elif answer not in QUIET_ANSWERS:
        memory.hint(failure.sentence)
    memory.dcgm_at = clock.monotonic() + wait


async def dcgm_once(
    runner: Runner, clock: Clock, host: str, memory: HostMemory, ids: tuple[int, ...]
) -> tuple[GpuSample, ...]:
    """The newest of two rounds, a second apart; nothing where DCGM gives none. Raises
    :class:`NodeUnreachable`."""
    while ids:
        command = dcgm_command(host, ids, memory.open_tools, count=2, round_s=1.0)
        try:
            done = await runner.run(command)
        except NodeUnreachable:
            raise
        except RunnerError:
            return ()
        answer = parse_node_answer(done.stdout)
        memory.learn(answer)
        dmon, discovery = answer.parts.get("dmon"), answer.parts.get("discovery")
        if dmon is None or dmon.rc is None:
            memory.dcgm_at = clock.monotonic() + _AGAIN_S
            return ()
        named = _named(dmon.text, parse_discovery(discovery.text if discovery else b""))
        if dmon.rc == 0 and (named or parse_dmon(dmon.text).rows):
            return named
        before = ids
        refused(memory, clock, host, ids, dmon.rc, dmon.text)
        ids = memory.dcgm_ids or ()
        if ids == before or clock.monotonic() < memory.dcgm_at:
            return ()
    return ()
