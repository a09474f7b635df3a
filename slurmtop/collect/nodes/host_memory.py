"""What was learnt of one node in this session, so that nothing is found out twice."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from slurmtop.model.gpu import NodeGpus
from slurmtop.model.ports import Clock
from slurmtop.model.snapshot import Failure
from slurmtop.parse.gpu.fields import CORE_FIELDS, OPTIONAL_FIELDS
from slurmtop.parse.gpu.node_script import NodeAnswer, OpenTool

#: DCGM's counters that every hostengine has: utilisation, power, temperatures, clock, the last Xid.
PLAIN_IDS = (203, 155, 150, 140, 100, 230)
#: Counters of the profiling module that dcgm-exporter watches where nobody changed its list.
WATCHED_IDS = (1001, 1004, 1005, 1009, 1010)
#: All that slurmtop shows: SM activity, occupancy and NVLink as well.
ALL_IDS = (1001, 1002, 1003, 1004, 1005, 1009, 1010, 1011, 1012)


@dataclass(frozen=True, slots=True)
class Kept:
    """The newest values that one source gave, and when they were true."""

    node: NodeGpus
    at: datetime
    source: str


@dataclass(slots=True)
class HostMemory:
    """``fields`` are those that the driver there knows. ``open_tools`` are processes of ours that
    may still be there. ``driver_at`` and ``dcgm_at`` are monotonic seconds before which the driver
    and DCGM are left alone; infinity: for the whole session. ``kept`` outlives the watch that saw
    it. ``seen``: see ``NodeAnswer``."""

    fields: tuple[str, ...] = (*CORE_FIELDS, *OPTIONAL_FIELDS)
    open_tools: tuple[OpenTool, ...] = ()
    driver_at: float = -math.inf
    driver_failure: Failure | None = None
    kept: Kept | None = None
    only: tuple[str, ...] = ()
    """The UUIDs of the GPUs beside a card that is lost: it takes the rows of all others along."""
    lost: tuple[str, ...] = ()
    """Bus ids of the cards that are lost, as last told."""
    no_nvidia_smi: bool = False
    no_nvml: bool = False
    took_s: float | None = None
    """How long the driver needed for its last first answer."""
    dcgm_ids: tuple[int, ...] | None = None
    """What is left to ask DCGM for, once it refused something."""
    dcgm_at: float = -math.inf
    seen: frozenset[str] | None = None
    hints: list[str] = field(default_factory=list)
    """Sentences that were told already, in order."""

    def learn(self, answer: NodeAnswer) -> None:
        """Take what an answer of the script says of the node."""
        if answer.seen or answer.whole:
            self.seen = answer.seen
        if answer.open_tools:
            self.keep(answer.open_tools)
        elif answer.whole:
            if any(one.state == "D" for one in self.open_tools):
                # Nobody can end such a process: the driver let it go, so it answers again.
                self.driver_at = -math.inf
            self.open_tools = ()
        self.keep(answer.running)

    def keep(self, tools: Sequence[OpenTool]) -> None:
        """Remember processes that may still be there."""
        known = {(one.pid, one.start_ticks): one for one in (*self.open_tools, *tools)}
        self.open_tools = tuple(known.values())[-8:]

    def hint(self, sentence: str | None) -> None:
        """Tell a sentence once."""
        if sentence and sentence not in self.hints:
            self.hints.append(sentence)

    def leave_driver(self, clock: Clock, failure: Failure | None) -> None:
        """After a failure: when the driver may be asked again."""
        self.driver_failure = failure
        wait = None if failure is None else failure.retry_after_s
        if wait:
            self.driver_at = clock.monotonic() + wait

    def driver_rests(self, clock: Clock) -> bool:
        """Must the driver be left alone for now?"""
        return clock.monotonic() < self.driver_at


class Memories:
    """The memory of every node, kept while slurmtop runs."""

    def __init__(self) -> None:
        self._hosts: dict[str, HostMemory] = {}

    def of(self, host: str) -> HostMemory:
        return self._hosts.setdefault(host, HostMemory())
