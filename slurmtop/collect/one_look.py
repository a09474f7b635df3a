"""One look at all nodes of a job while it is made, and the waits of it."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from slurmtop.collect.clock import within
from slurmtop.model.live import Sample
from slurmtop.model.ports import Clock
from slurmtop.model.probe import NodeProbe
from slurmtop.model.process import NodeProcess
from slurmtop.model.stacks import ProcessStacks
from slurmtop.triage.process_tree import DEAD
from slurmtop.triage.ranks import rank_processes

#: Processes of one node whose stacks are read.
MOST_STACKS = 32


class OneLook:
    """One sample while it is made: its tasks and answers by host."""

    def __init__(self, began_at: datetime, number: int, hosts: Sequence[str]) -> None:
        self.number = number
        self.probing: dict[str, asyncio.Task[None]] = {}
        self.probes: dict[str, NodeProbe] = {}
        self.half = asyncio.Event()
        self.all = asyncio.Event()
        self.stacks_asked = False
        self.asked: set[str] = set()
        self.reading: list[asyncio.Task[None]] = []
        self.stacks: dict[str, list[ProcessStacks]] = {}
        self.whole = False
        self.began_at = began_at
        self._hosts = hosts
        self._lost: set[str] = set()

    def add(self, probe: NodeProbe) -> None:
        self.probes[probe.host] = probe
        if 2 * len(self.probes) >= len(self._hosts):
            self.half.set()
        self._all_told()

    def lost(self, host: str) -> None:
        """Nobody has to wait for ``host``: it is known not to answer in time."""
        self._lost.add(host)
        self._all_told()

    def _all_told(self) -> None:
        if len(self.probes.keys() | self._lost) == len(self._hosts):
            self.half.set()
            self.all.set()

    def sample(self) -> Sample:
        return Sample(
            began_at=self.began_at,
            probes=tuple(self.probes[host] for host in self._hosts if host in self.probes),
            stacks=tuple(one for host in self._hosts for one in self.stacks.get(host, ())),
            stacks_asked=self.stacks_asked,
            whole=self.whole,
        )


def rank_like(probe: NodeProbe, job: str) -> tuple[NodeProcess, ...]:
    """The processes of one node that are ranks of ``job``, or may be, at most some dozens."""
    if probe.processes is None:
        return ()
    found: dict[tuple[str, int, int], NodeProcess] = {}
    for rank in rank_processes((probe.processes,), job):
        for process in (rank.process, *rank.perhaps):
            if process.state not in DEAD:
                found.setdefault(process.key, process)
    return tuple(found.values())[:MOST_STACKS]


async def happens(clock: Clock, event: asyncio.Event, limit_s: float) -> bool:
    """Did it happen within ``limit_s``?"""
    try:
        await within(clock, event.wait(), max(0.0, limit_s), name="answers of the nodes")
    except TimeoutError:
        return event.is_set()
    return True


async def all_within(clock: Clock, tasks: Sequence[asyncio.Task[None]], limit_s: float) -> None:
    """Wait for ``tasks`` no longer than ``limit_s``; they are left to the caller."""

    async def all_done() -> None:
        await asyncio.wait(tasks)

    try:
        await within(clock, all_done(), limit_s, name="stacks of all nodes")
    except TimeoutError:
        return
