"""The GPUs of one node while somebody looks: its sources side by side, merged into one look."""

import asyncio
import contextlib
import math
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime, timedelta

from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.nodes.amd import EVERY_S as AMD_EVERY_S
from slurmtop.collect.nodes.amd import ask_amd
from slurmtop.collect.nodes.dcgmi import DcgmMode, DcgmRound, dcgm_rounds, wanted_ids
from slurmtop.collect.nodes.exporter import Told
from slurmtop.collect.nodes.gpu_script import ROUND_S
from slurmtop.collect.nodes.host_memory import HostMemory, Kept
from slurmtop.collect.nodes.nvidia_smi import (
    SLOW_S,
    Beside,
    ask_once,
    probe,
    stream_rounds,
)
from slurmtop.collect.nodes.nvml import SOURCE as NVML
from slurmtop.collect.nodes.nvml import NvmlReader
from slurmtop.collect.nodes.processes import read_processes
from slurmtop.model.gpu import Answer, NodeGpus
from slurmtop.model.look import HostLook
from slurmtop.model.ports import Clock, NodeUnreachable, Runner, RunnerError
from slurmtop.model.process import NodeProcesses
from slurmtop.model.reach import Reach
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.parse.gpu.merged import merge_samples
from slurmtop.parse.nic import NicLook, with_rates
from slurmtop.triage.gpus import next_look_s, persistence_hint

SMI, DCGM = "nvidia-smi", "dcgmi"
#: How often ports, processes and the processes on GPUs are read.
PROBE_S = 15.0
#: What DCGM or an exporter said longer ago than this is not of the same moment any more.
_DCGM_FRESH_S = 10.0
TOLD_FRESH_S = 30.0
_FIRST_RETRY_S = 10.0
_LONGEST_RETRY_S = 300.0
#: A node that is slow to let us in holds a place among those that start no longer than this.
_PLACE_S = 5.0
#: Nobody waits longer than this for what is being ended.
_CLOSE_S = 4.0


class Place:
    """One of the few places for nodes that are just starting."""

    def __init__(self, gate: asyncio.Semaphore, clock: Clock) -> None:
        self._gate = gate
        self._clock = clock
        self._held = False
        self._timer: asyncio.Task[None] | None = None

    async def take(self) -> None:
        await self._gate.acquire()
        self._held = True
        self._timer = spawn(self._give_late(), name="a place among the starting nodes")

    def give(self) -> None:
        if self._held:
            self._held = False
            self._gate.release()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _give_late(self) -> None:
        await self._clock.sleep(_PLACE_S)
        self._timer = None
        self.give()


class HostWatch:
    """Runs the sources of one node and tells every news of it. ``run`` never raises for a node."""

    def __init__(
        self,
        runner: Runner,
        clock: Clock,
        host: str,
        on_look: Callable[[HostLook], None],
        *,
        memory: HostMemory,
        gate: asyncio.Semaphore,
        dcgm: DcgmMode,
        reach: Callable[[str], Reach | None],
        nvml: NvmlReader | None,
        job: str | None = None,
    ) -> None:
        self._runner = runner
        self._clock = clock
        self._host = host
        self._on_look = on_look
        self._memory = memory
        self._gate = gate
        self._dcgm_mode = dcgm
        self._reach = reach
        self._nvml = nvml
        self._job = job
        self._kept = memory.kept
        self._fresh = False
        self._dcgm: DcgmRound | None = None
        self._told: Told | None = None
        self._not_told: tuple[str, ...] = ()
        self._nics: NicLook | None = None
        self._look = HostLook(host=host)
        self._failures = 0
        self._poked = asyncio.Event()
        self._answered = asyncio.Event()
        self._unreachable = False
        self._again_at = 0.0

    async def run(self) -> None:
        """Watch until cancelled; then nothing of it runs on the node."""
        parts: list[Coroutine[None, None, None]] = [
            self._values(),
            self._beside(),
            self._counters(),
        ]
        tasks = [spawn(part, name=f"GPUs of {self._host}") for part in parts]
        try:
            await asyncio.gather(*tasks)
        finally:
            # What an exporter says from now on is newer than the last round.
            self._fresh = False
            ending = spawn(cancel_and_wait(*tasks), name=f"GPUs of {self._host}: end")
            timer = spawn(self._clock.sleep(_CLOSE_S), name=f"GPUs of {self._host}: end limit")
            await asyncio.wait((ending, timer), return_when=asyncio.FIRST_COMPLETED)
            timer.cancel()

    async def look(self) -> None:
        """One look, while it is not run; none where the node is to be left alone for now.

        What is read beside the values (processes, counters of DCGM) stays as it was.
        """
        if self._clock.monotonic() < self._again_at:
            return
        while (wait_s := await self._try(stream=False)) <= 0:
            # The tool that was asked for is not there; now that is known.
            continue
        self._again_at = self._clock.monotonic() + (wait_s if self.failing else 0.0)
        self._fresh = False

    @property
    def failing(self) -> bool:
        return self._look.failure is not None

    def poke(self) -> None:
        """Try at once what has failed; a driver that hangs is left alone all the same."""
        if self.failing:
            self._failures, self._again_at = 0, 0.0
            self._poked.set()

    def told(self, told: Told) -> None:
        """What an exporter or Prometheus says of this node."""
        failed = told.node.failure if not told.node.samples else None
        self._not_told = () if failed is None else (failed.sentence,)
        if failed is None:
            self._told = told
        if not self._fresh:
            self._tell()

    # -- the values ----------------------------------------------------------------------------

    async def _values(self) -> None:
        while True:
            self._poked.clear()
            wait_s = await self._try(stream=True)
            self._answered.set()
            await self._rest(wait_s)

    async def _try(self, *, stream: bool) -> float:
        """Ask in one way, by one look or for as long as it goes well; how long to rest then."""
        place = Place(self._gate, self._clock)
        await place.take()
        try:
            return await self._look_on(place, stream=stream)
        except NodeUnreachable as error:
            self._unreachable, self._fresh = True, False
            return self._failed(error.failure)
        except RunnerError as error:
            self._fresh = False
            return self._failed(Failure(Trouble.LOCAL, str(error)))
        finally:
            place.give()

    async def _look_on(self, place: Place, *, stream: bool) -> float:
        if self._nvml is not None and not self._memory.no_nvml:
            return await self._by_nvml(self._nvml, place)
        if self._memory.driver_rests(self._clock):
            wait_s = self._memory.driver_at - self._clock.monotonic()
            if self._memory.driver_failure is not None:
                self._tell_failure(self._memory.driver_failure, wait_s)
            return wait_s
        if self._memory.no_nvidia_smi:
            return await self._by_amd(place)
        slow = self._memory.took_s is not None and self._memory.took_s > SLOW_S
        if slow or not stream:
            node, beside = await ask_once(self._runner, self._clock, self._host, self._memory)
            self._take_beside(beside)
            return self._good_or_not(node, SMI, place)
        wait_s, last = ROUND_S, None
        rounds = stream_rounds(self._runner, self._clock, self._host, self._memory)
        async with aclosing(rounds):
            async for node in rounds:
                wait_s, last = self._good_or_not(node, SMI, place), node
        if last is not None and last.failure is not None and _beside_lost(last):
            # A stream that it ended does not go on beside it.
            wait_s = self._failed(last.failure)
        return wait_s

    async def _by_nvml(self, nvml: NvmlReader, place: Place) -> float:
        node = await nvml.read(60.0)
        if node.answer is Answer.NO_TOOL:
            self._memory.no_nvml = True
            return 0.0
        return self._good_or_not(node, NVML, place)

    async def _by_amd(self, place: Place) -> float:
        node, program = await ask_amd(self._runner, self._host, self._memory)
        wait_s = self._good_or_not(node, program, place)
        return max(wait_s, AMD_EVERY_S)

    def _good_or_not(self, node: NodeGpus, source: str, place: Place) -> float:
        """Take one answer; how long until the next where the source does not go on by itself."""
        place.give()
        self._unreachable = node.answer is Answer.UNREACHABLE
        if source == SMI and node.answer is Answer.NO_TOOL and not self._memory.no_nvidia_smi:
            self._memory.no_nvidia_smi = True
            return 0.0
        self._memory.hint(persistence_hint(node))
        if node.samples:
            if node.processes is None and self._kept is not None:
                node = replace(node, processes=self._kept.node.processes)
            self._kept = self._memory.kept = Kept(node, self._clock.now(), source)
        self._fresh = bool(node.samples)
        # A card that is lost is told with the values: the others are read as before.
        if node.failure is None or _beside_lost(node):
            self._failures = 0
            self._good()
            return next_look_s(node.took_s or 0.0, ROUND_S)
        if node.answer is Answer.NO_ANSWER:
            self._memory.leave_driver(self._clock, node.failure)
        return self._failed(node.failure)

    def _good(self) -> None:
        self._answered.set()
        self._look = replace(self._look, failure=None, failing_since=None, next_at=None)
        self._tell()

    def _failed(self, failure: Failure) -> float:
        """Tell it, and how long to wait: longer each time, for ever where it is pointless."""
        self._failures += 1
        # 2 ** 5 times the first wait is more than the longest one.
        wait_s = min(_FIRST_RETRY_S * 2.0 ** min(self._failures - 1, 5), _LONGEST_RETRY_S)
        if failure.retry_after_s is not None:
            wait_s = max(wait_s, failure.retry_after_s)
        self._tell_failure(failure, wait_s)
        return wait_s

    def _tell_failure(self, failure: Failure, wait_s: float) -> None:
        now = self._clock.now()
        self._look = replace(
            self._look,
            failure=failure,
            failing_since=self._look.failing_since or now,
            next_at=None if math.isinf(wait_s) else now + timedelta(seconds=wait_s),
        )
        self._answered.set()
        self._tell()

    async def _rest(self, wait_s: float) -> None:
        """Wait, but for a poke; without end where nothing else would help."""
        if wait_s <= 0:
            return
        waits = [spawn(_event(self._poked), name=f"poke {self._host}")]
        if not math.isinf(wait_s):
            waits.append(spawn(self._clock.sleep(wait_s), name=f"rest {self._host}"))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()

    # -- what is read beside -------------------------------------------------------------------

    async def _beside(self) -> None:
        await self._answered.wait()
        while True:
            if not self._unreachable:
                with contextlib.suppress(RunnerError):
                    await self._probe()
            await self._clock.sleep(PROBE_S)

    async def _probe(self) -> None:
        slow = self._memory.took_s is not None and self._memory.took_s > SLOW_S
        apps = not (
            slow
            or self._memory.no_nvidia_smi
            or self._memory.driver_rests(self._clock)
            or self._kept is None
            or self._kept.source != SMI
        )
        rests = self._memory.driver_rests(self._clock)
        self._take_beside(await probe(self._runner, self._host, self._memory, apps=apps))
        if rests and not self._memory.driver_rests(self._clock):
            self._poked.set()
        if self._job is not None:
            # With our own of other jobs: whose GPUs are whose is told by them.
            processes = await read_processes(
                self._runner, self._clock, self._host, job=self._job, own=True
            )
            self._look = replace(self._look, processes=_newer(self._look.processes, processes))
        self._tell()

    def _take_beside(self, beside: Beside) -> None:
        if beside.nics is not None:
            ports = with_rates(self._nics, beside.nics)
            self._nics = beside.nics
            self._look = replace(self._look, nics=ports)
        if beside.inside_known:
            self._look = replace(self._look, inside=beside.inside)
        if beside.processes is not None and self._kept is not None:
            node = replace(self._kept.node, processes=beside.processes)
            self._kept = replace(self._kept, node=node)

    # -- DCGM ----------------------------------------------------------------------------------

    async def _counters(self) -> None:
        """DCGM's own counters, where they are wanted and there; they never fail a look."""
        await self._answered.wait()
        while True:
            ids = wanted_ids(self._dcgm_mode, self._memory, self._clock)
            if ids and self._fresh and not self._unreachable:
                rounds = dcgm_rounds(self._runner, self._clock, self._host, self._memory, ids)
                before = self._dcgm
                with contextlib.suppress(RunnerError):
                    async with aclosing(rounds):
                        async for one in rounds:
                            self._dcgm = one
                if self._dcgm is before and self._memory.dcgm_ids == ids:
                    # It gave nothing and refused nothing new: no reason to hurry.
                    await self._clock.sleep(PROBE_S)
            await self._clock.sleep(ROUND_S)

    # -- one look ------------------------------------------------------------------------------

    def _tell(self) -> None:
        reach = self._reach(self._host)
        way = self._look.way if reach is None else reach.way
        node, at, sources = self._merged()
        self._look = replace(
            self._look,
            way=way,
            gpus=node,
            gpus_at=at,
            sources=sources,
            hints=tuple(dict.fromkeys((*self._memory.hints, *self._not_told))),
        )
        self._on_look(self._look)

    def _merged(self) -> tuple[NodeGpus | None, datetime | None, tuple[str, ...]]:
        told, kept = self._told, self._kept
        if told is not None and not self._fresh and (kept is None or told.at > kept.at):
            return told.node, told.at, (told.source,)
        if kept is None:
            return None, None, ()
        samples, sources = kept.node.samples, [kept.source]
        if self._dcgm is not None and abs((kept.at - self._dcgm.at).total_seconds()) <= (
            _DCGM_FRESH_S
        ):
            samples, used = merge_samples(samples, self._dcgm.samples)
            sources += [DCGM] if used else []
        if told is not None and abs((kept.at - told.at).total_seconds()) <= TOLD_FRESH_S:
            samples, used = merge_samples(samples, told.node.samples)
            sources += [told.source] if used else []
        return replace(kept.node, samples=samples), kept.at, tuple(sources)


def _beside_lost(node: NodeGpus) -> bool:
    """Are there values of the cards beside one that is lost?"""
    return bool(node.samples) and node.answer is Answer.GPU_LOST


def _newer(old: NodeProcesses | None, new: NodeProcesses) -> NodeProcesses:
    """A look that failed does not take away what was known: each has its own age."""
    return old if new.failure is not None and old is not None else new


async def _event(event: asyncio.Event) -> None:
    await event.wait()
