"""The GPUs of many nodes while a view is shown, and one look for a command.

Who shows them knows :class:`HostLook` only. A node that does not answer costs its own looks.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.nodes.amd import ask_amd
from slurmtop.collect.nodes.dcgmi import DcgmMode, dcgm_once, wanted_ids
from slurmtop.collect.nodes.exporter import EVERY_S, Exporters, Told
from slurmtop.collect.nodes.gpu_host import DCGM, SMI, TOLD_FRESH_S, HostWatch
from slurmtop.collect.nodes.gpu_script import FIRST_ANSWER_S
from slurmtop.collect.nodes.gpu_turns import Turns
from slurmtop.collect.nodes.host_memory import HostMemory, Memories
from slurmtop.collect.nodes.nvidia_smi import ask_once
from slurmtop.collect.nodes.nvml import NvmlReader
from slurmtop.model.gpu import Answer
from slurmtop.model.look import HostLook
from slurmtop.model.ports import Clock, NodeUnreachable, Runner
from slurmtop.model.reach import Reach
from slurmtop.model.units import ago_text
from slurmtop.parse.gpu.merged import merge_samples

#: Nodes that start at once.
AT_ONCE = 8


def _no_reach(_host: str) -> Reach | None:
    return None


def _nothing_kept(_host: str) -> None:
    return None


class GpuWatch:
    """Watches ``hosts`` while ``run`` runs; ``on_look`` hears of every news of one of them.

    ``memories`` outlives the watch: what a node refused is not asked for again. ``here`` is the
    name of the node on which slurmtop itself runs, where NVML is asked without a child. ``job`` is
    the raw number of the one whose processes are read beside one's own; without it none are.
    """

    def __init__(
        self,
        runner: Runner,
        clock: Clock,
        hosts: Sequence[str],
        on_look: Callable[[HostLook], None],
        *,
        memories: Memories | None = None,
        dcgm: DcgmMode = DcgmMode.AUTO,
        exporters: Exporters | None = None,
        reach: Callable[[str], Reach | None] = _no_reach,
        try_again: Callable[[str], None] = _nothing_kept,
        here: str | None = None,
        job: str | None = None,
    ) -> None:
        self._clock = clock
        self._exporters = exporters
        self._try_again = try_again
        gate = asyncio.Semaphore(AT_ONCE)
        known = memories or Memories()
        self._nvml = NvmlReader(here, clock) if here is not None and here in hosts else None
        self._hosts = {
            host: HostWatch(
                runner,
                clock,
                host,
                on_look,
                memory=known.of(host),
                gate=gate,
                dcgm=dcgm,
                reach=reach,
                nvml=self._nvml if host == here else None,
                job=job,
            )
            for host in hosts
        }
        self._turns = Turns(self._hosts, clock)

    @property
    def in_turn(self) -> int:
        """How many of the nodes have no stream and are looked at one after the other."""
        return self._turns.in_turn

    def in_view(self, hosts: Sequence[str]) -> None:
        """Which of the nodes a person sees: of many, these have a stream."""
        self._turns.in_view(hosts)

    async def run(self) -> None:
        """Watch until cancelled. Returns then within a few seconds, whatever hangs where."""
        tasks = [spawn(self._turns.run(), name="GPU watches")]
        if self._exporters is not None and self._exporters.set_up:
            tasks.append(spawn(self._ask_exporters(self._exporters), name="GPU exporters"))
        try:
            await asyncio.gather(*tasks)
        finally:
            await cancel_and_wait(*tasks)
            if self._nvml is not None:
                self._nvml.close()

    def poke(self) -> None:
        """Try at once what has failed."""
        for host, watch in self._hosts.items():
            if watch.failing:
                self._try_again(host)
                watch.poke()
                self._turns.again(host)

    async def _ask_exporters(self, exporters: Exporters) -> None:
        while True:
            for host, told in (await exporters.ask(tuple(self._hosts))).items():
                self._hosts[host].told(told)
            await self._clock.sleep(EVERY_S)


async def look_once(
    runner: Runner,
    clock: Clock,
    host: str,
    *,
    memories: Memories | None = None,
    dcgm: DcgmMode = DcgmMode.AUTO,
    reach: Callable[[str], Reach | None] = _no_reach,
    timeout_s: float = FIRST_ANSWER_S,
) -> HostLook:
    """One look at the GPUs of one node, for a command; the node's processes are not read.

    Never raises; ``failure`` says why there is none. ``timeout_s`` is for the driver's answer;
    several round trips may be needed. What an exporter knows is added by :func:`with_told`.
    """
    memory = (memories or Memories()).of(host)
    began = clock.now()
    try:
        look = await _direct(runner, clock, host, memory, dcgm, timeout_s)
    except NodeUnreachable as error:
        look = HostLook(host=host, failure=error.failure, failing_since=began)
    found = reach(host)
    return replace(look, way=None if found is None else found.way, hints=tuple(memory.hints))


async def _direct(
    runner: Runner, clock: Clock, host: str, memory: HostMemory, dcgm: DcgmMode, timeout_s: float
) -> HostLook:
    node, beside = await ask_once(runner, clock, host, memory, timeout_s=timeout_s)
    source = SMI
    if node.answer is Answer.NO_TOOL:
        node, source = await ask_amd(runner, host, memory)
    at = clock.now()
    sources: tuple[str, ...] = (source,)
    ids = wanted_ids(dcgm, memory, clock) if node.samples and source == SMI else ()
    if ids:
        counters = await dcgm_once(runner, clock, host, memory, ids)
        samples, used = merge_samples(node.samples, counters)
        node = replace(node, samples=samples)
        sources = (*sources, DCGM) if used else sources
    return HostLook(
        host=host,
        gpus=node if node.samples or node.lost else None,
        gpus_at=at if node.samples or node.lost else None,
        sources=sources if node.samples else (),
        failure=node.failure,
        failing_since=None if node.failure is None else at,
        inside=beside.inside,
        nics=None if beside.nics is None else beside.nics.ports,
    )


def with_told(look: HostLook, told: Told) -> HostLook:
    """A look with what the exporter knows besides; alone where nothing else is there. What it read
    at another time is no value of this look: Prometheus keeps a value for five minutes."""
    failure = told.node.failure
    if not told.node.samples:
        # Also where nothing listens: somebody set up an exporter and expects its values.
        return look if failure is None else replace(look, hints=(*look.hints, failure.sentence))
    if look.gpus is None or look.gpus_at is None or not look.gpus.samples:
        lost = () if look.gpus is None else look.gpus.lost
        gpus = replace(told.node, lost=lost)
        return replace(look, gpus=gpus, gpus_at=told.at, sources=(told.source,))
    apart_s = abs((look.gpus_at - told.at).total_seconds())
    if apart_s > TOLD_FRESH_S:
        says = f"What {told.source} tells is {ago_text(apart_s)} older and was left out."
        return replace(look, hints=(*look.hints, says))
    samples, used = merge_samples(look.gpus.samples, told.node.samples)
    gpus = replace(look.gpus, samples=samples)
    return replace(look, gpus=gpus, sources=(*look.sources, told.source) if used else look.sources)
