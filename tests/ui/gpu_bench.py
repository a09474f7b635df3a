"""A Job screen over a fake watch of GPUs: looks come when the test says so."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from textual.pilot import Pilot

from slurmtop.model.gpu import GpuProcess, GpuSample, NodeGpus
from slurmtop.model.job import Job, Tres
from slurmtop.model.look import HostLook
from slurmtop.model.process import NodeProcess, NodeProcesses
from slurmtop.model.reach import Way
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.ui.screens.job import TABS, JobScreen
from slurmtop.ui.widgets.gpus_tab import GpusTab
from tests.fakes import settle
from tests.ui.job_bench import JOB, JobBench

H100 = "NVIDIA H100 80GB HBM3"
#: A job of 16 GPUs on two nodes.
TWO_NODES = replace(JOB, tres=Tres(gpus=16, gpus_by_type=(("h100", 16),)))


def make_gpu(index: int = 0, *, host: str = "gpu01", **fields: Any) -> GpuSample:
    """A GPU that computes: 97 %, near its power limit. ``fields`` replace what they name."""
    given: dict[str, Any] = {
        "index": index,
        "uuid": f"GPU-{host}-{index:04}-5f3a9c11",
        "bus_id": f"0000:{0x17 + index:02x}:00.0",
        "name": H100,
        "util_percent": 97.0,
        "mem_used_mib": 61_000.0,
        "mem_total_mib": 81_559.0,
        "temp_c": 62.0,
        "power_w": 630.0,
        "power_limit_w": 700.0,
        "sm_clock_mhz": 1_980.0,
        "pstate": "P0",
        "events": 0,
        "ecc_uncorrected": 0.0,
        "sm_active": 0.91,
        "tensor_active": 0.44,
        "dram_active": 0.31,
        "nvlink_tx_bytes_s": 118e9,
        "nvlink_rx_bytes_s": 117e9,
    }
    return GpuSample(**{**given, **fields})


def make_gpus(host: str, count: int = 8, **fields: Any) -> NodeGpus:
    """A node whose GPUs all look the same."""
    samples = tuple(make_gpu(index, host=host, **fields) for index in range(count))
    return NodeGpus(host=host, samples=samples)


def with_gpu(gpus: NodeGpus, index: int, **fields: Any) -> NodeGpus:
    """The same node with one GPU changed."""
    samples = [replace(gpu, **fields) if gpu.index == index else gpu for gpu in gpus.samples]
    return replace(gpus, samples=tuple(samples))


class FakeWatch:
    """What the app started: whose nodes, and whether it still runs."""

    def __init__(
        self, hosts: Sequence[str], job: Job | None, on_look: Callable[[HostLook], None]
    ) -> None:
        self.hosts, self.job, self.on_look = tuple(hosts), job, on_look
        self.started = self.ended = self.pokes = self.in_turn = 0
        self.seen: tuple[str, ...] = ()
        self.leaving = asyncio.Event()
        """While it is not set, an end takes as long as a node that hangs."""
        self.leaving.set()

    def runs(self) -> bool:
        return self.started > self.ended

    async def run(self) -> None:
        self.started += 1
        try:
            await asyncio.Event().wait()
        finally:
            await self.leaving.wait()
            self.ended += 1

    def poke(self) -> None:
        self.pokes += 1

    def in_view(self, hosts: Sequence[str]) -> None:
        self.seen = tuple(hosts)


class GpuBench(JobBench):
    """A job bench with nodes to look at; ``look`` is one news of one node."""

    def __init__(self, **services: Any) -> None:
        self.watches: list[FakeWatch] = []
        super().__init__(**{"watch_gpus": self._watch, **services})

    def _watch(
        self, hosts: Sequence[str], *, job: Job | None, on_look: Callable[[HostLook], None]
    ) -> FakeWatch:
        self.watches.append(FakeWatch(hosts, job, on_look))
        return self.watches[-1]

    @property
    def watch(self) -> FakeWatch:
        return self.watches[-1]

    async def gpus(self, pilot: Pilot[None], job: Job = TWO_NODES) -> GpusTab:
        """Open the job and show its GPUs tab."""
        screen = await self.open(pilot, job)
        await self.show_tab(pilot)
        return screen.gpus

    async def show_tab(self, pilot: Pilot[None], name: str = "GPUs") -> None:
        screen = pilot.app.screen
        assert isinstance(screen, JobScreen)
        while TABS[screen.tab] != name:
            await self.press(pilot, "tab")

    def look(self, gpus: NodeGpus, **fields: Any) -> None:
        """One node answers."""
        given: dict[str, Any] = {
            "way": Way.SSH,
            "gpus": gpus,
            "gpus_at": self.clock.now(),
            "sources": ("nvidia-smi",),
        }
        self.watch.on_look(HostLook(host=gpus.host, **{**given, **fields}))

    def node_fails(
        self, host: str, sentence: str, *, before: NodeGpus | None = None, **fields: Any
    ) -> None:
        """A look at a node fails; ``before``: what it said until a while ago."""
        now = self.clock.now()
        given: dict[str, Any] = {
            "failure": Failure(Trouble.DOWN, sentence),
            "failing_since": now,
            "next_at": now + timedelta(seconds=40),
            "gpus": before,
            "gpus_at": None if before is None else now - timedelta(minutes=4),
        }
        self.watch.on_look(HostLook(host=host, **{**given, **fields}))

    async def told(self, pilot: Pilot[None]) -> None:
        """The screen has heard of the looks."""
        await settle()
        await self.advance(pilot, 1)
        await self.settled(pilot)


def with_ranks(gpus: NodeGpus, bench: GpuBench, first: int, world: int, job: str) -> dict[str, Any]:
    """Fields of a look in which each GPU has one rank of ``job`` on it."""
    processes = []
    on_gpus = []
    for gpu in gpus.samples:
        rank = first + (gpu.index or 0)
        pid = 8_100 + rank
        env = (("RANK", str(rank)), ("WORLD_SIZE", str(world)), ("LOCAL_RANK", str(gpu.index)))
        processes.append(
            NodeProcess(
                host=gpus.host,
                pid=pid,
                start_ticks=100,
                ppid=1,
                name="python3",
                argv=("python3", "train.py"),
                job=job,
                step="0",
                env=(*env, ("SLURM_JOB_ID", job)),
            )
        )
        on_gpus.append(GpuProcess(pid=pid, gpu_uuid=gpu.uuid))
    return {
        "gpus": replace(gpus, processes=tuple(on_gpus)),
        "processes": NodeProcesses(
            host=gpus.host, at=bench.clock.now(), processes=tuple(processes)
        ),
    }
