"""A watch over scripted nodes that runs, and all that it said of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.nodes.dcgmi import DcgmMode
from slurmtop.collect.nodes.gpu_watch import GpuWatch
from slurmtop.model.look import HostLook
from tests.collect.nodes.gpu_fakes import FakeNodes, Stream
from tests.fakes import FakeClock, settle


@dataclass
class Desk:
    """A watch that runs, and all that it said of each node."""

    clock: FakeClock
    nodes: FakeNodes
    watch: GpuWatch
    looks: dict[str, list[HostLook]] = field(default_factory=dict)

    def last(self, host: str = "gpu05") -> HostLook:
        return self.looks[host][-1]

    async def tick(self, seconds: float) -> None:
        """What was said is heard, then time goes on."""
        await settle()
        await self.clock.advance(seconds)

    def stream(self, host: str = "gpu05", want: str = "stream") -> Stream:
        (one,) = self.nodes.open_streams(host, want)
        return one

    def utils(self, host: str = "gpu05") -> list[float | None]:
        gpus = self.last(host).gpus
        return [] if gpus is None else [one.util_percent for one in gpus.samples]


@asynccontextmanager
async def watching(
    *hosts: str,
    nodes: FakeNodes | None = None,
    clock: FakeClock | None = None,
    **options: Any,
) -> AsyncIterator[Desk]:
    clock = clock or (nodes.clock if nodes is not None else FakeClock())
    nodes = nodes or FakeNodes(clock)
    looks: dict[str, list[HostLook]] = {}

    def on_look(look: HostLook) -> None:
        looks.setdefault(look.host, []).append(look)

    options.setdefault("dcgm", DcgmMode.OFF)
    watch = GpuWatch(nodes, clock, hosts or ("gpu05",), on_look, **options)
    task = spawn(watch.run(), name="watch")
    await settle()
    try:
        yield Desk(clock, nodes, watch, looks)
    finally:
        ending = spawn(cancel_and_wait(task), name="end")
        for _ in range(10):
            await clock.advance(1)
        await ending
