"""A Job screen over a look at nodes that tells what the test says, when the test says so."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from slurmtop.model.facts import JobFacts, LogFacts, LogStatus
from slurmtop.model.live import LiveFacts, LogMotion, Sample
from slurmtop.model.probe import Activity, Counters, NodeProbe
from slurmtop.model.process import NodeProcess, NodeProcesses
from slurmtop.model.stacks import Frame, ProcessStacks, ThreadStack
from tests.fakes import START
from tests.ui.job_bench import ERR, OUT, JobBench

HOSTS = ("gpu01", "gpu02")
TORCH = "/opt/venv/lib/python3.11/site-packages/torch"
REDUCE = (
    Frame("all_reduce", f"{TORCH}/distributed/distributed_c10d.py", 2806),
    Frame("wrapper", f"{TORCH}/distributed/c10d_logger.py", 81),
    Frame("step", "/home/anna/run/train.py", 37),
    Frame("main", "/home/anna/run/train.py", 61),
    Frame("<module>", "/home/anna/run/train.py", 70),
)
READS = (
    Frame("read_batch", "/home/anna/run/data.py", 12),
    Frame("step", "/home/anna/run/train.py", 31),
    Frame("main", "/home/anna/run/train.py", 61),
    Frame("<module>", "/home/anna/run/train.py", 70),
)
ODD = 5
"""The rank that is elsewhere."""


def host_of(rank: int, ranks: int = 8) -> str:
    return HOSTS[rank * len(HOSTS) // ranks]


def process_of(rank: int, ranks: int = 8) -> NodeProcess:
    host = host_of(rank, ranks)
    env = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "SLURM_JOB_ID": "4711"}
    return NodeProcess(
        host=host,
        pid=4_000 + rank,
        start_ticks=100,
        ppid=1,
        uid=20017,
        user="anna",
        state="S",
        name="python",
        argv=("/opt/venv/bin/python", "-u", "train.py"),
        job="4711",
        step="0",
        env=tuple(env.items()),
        threads=12,
        inner_pids=(4_000 + rank,),
    )


def probe_of(host: str, at: datetime, *, odd_wchan: str = "pipe_read") -> NodeProbe:
    own = [process_of(rank) for rank in range(8) if host_of(rank) == host]
    activity = tuple(
        Activity(
            host=host,
            pid=one.pid,
            start_ticks=one.start_ticks,
            state="S",
            wchan=odd_wchan if one.pid == 4_000 + ODD else "futex_wait_queue",
            first=Counters(cpu_ticks=9_000, switches=400),
            second=Counters(cpu_ticks=9_000, switches=400),
            between_s=0.4,
        )
        for one in own
    )
    looked = NodeProcesses(host=host, at=at, processes=tuple(own))
    return NodeProbe(host=host, at=at, processes=looked, activity=activity)


def stacks_of(host: str, at: datetime, odd: tuple[Frame, ...] = READS) -> list[ProcessStacks]:
    return [
        ProcessStacks(
            host=host,
            pid=4_000 + rank,
            start_ticks=100,
            at=at,
            threads=(
                ThreadStack(
                    name="MainThread",
                    os_id=4_000 + rank,
                    active=False,
                    frames=odd if rank == ODD else REDUCE,
                ),
            ),
        )
        for rank in range(8)
        if host_of(rank) == host
    ]


def sample(
    at: datetime, hosts: tuple[str, ...] = HOSTS, *, whole: bool = True, odd: Any = READS
) -> Sample:
    return Sample(
        began_at=at,
        probes=tuple(probe_of(host, at) for host in hosts),
        stacks=tuple(one for host in hosts for one in stacks_of(host, at, odd)),
        stacks_asked=True,
        whole=whole,
    )


def live(*samples: Sample, **more: Any) -> LiveFacts:
    log = LogMotion(grew=False, quiet_s=90.0)
    return LiveFacts(job="4711", hosts=HOSTS, samples=samples, log=log, **more)


def two_looks(at: datetime, odd: Any = READS) -> LiveFacts:
    return live(sample(at, odd=odd), sample(at + timedelta(seconds=6), odd=odd))


class Look:
    """Stands for the look at nodes. ``tell`` hands on news; ``None`` ends the look."""

    def __init__(self) -> None:
        self.calls: list[tuple[JobFacts, bool]] = []
        self.open = 0
        self.most_open = 0
        self.error: Exception | None = None
        self._news: asyncio.Queue[LiveFacts | None] = asyncio.Queue()

    def tell(self, news: LiveFacts | None) -> None:
        self._news.put_nowait(news)

    async def __call__(self, facts: JobFacts, *, asked: bool) -> AsyncGenerator[LiveFacts, None]:
        self.calls.append((facts, asked))
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            while True:
                news = await self._news.get()
                if self.error is not None:
                    raise self.error
                if news is None:
                    return
                yield news
        finally:
            # As a real look: what is on its way is waited for.
            await asyncio.sleep(0)
            self.open -= 1


class LookBench(JobBench):
    """A running job of 8 ranks on two nodes; its log was written ``quiet_s`` ago."""

    def __init__(self, quiet_s: float = 90.0, **services: Any) -> None:
        self.nodes = Look()
        given = {"look_at_nodes": self.nodes, "user": "anna"}
        super().__init__(**{**given, **services})
        written = START - timedelta(seconds=quiet_s)
        self.runner.mtimes[OUT] = self.runner.mtimes[ERR] = written
        size = len(self.runner._bytes(OUT))
        log = LogFacts(label="stdout", path=OUT, status=LogStatus.READ, size=size, mtime=written)
        other = replace(log, label="stderr", path=ERR, size=len(self.runner._bytes(ERR)))
        self.facts.given["logs"] = (log, other)
