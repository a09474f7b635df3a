"""Builders of whole situations for examinations of live triage: a job, its ranks, two looks.

A rank is told by what its main thread calls (innermost first), the letter of its state, where in
the kernel it waits, the CPUs that it uses and the bytes that it moves. Everything else follows.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from slurmtop.model.facts import JobFacts
from slurmtop.model.gpu import GpuProcess, GpuSample, NodeGpus
from slurmtop.model.live import LiveFacts, LogMotion, Sample
from slurmtop.model.nic import NicPort
from slurmtop.model.probe import Activity, Counters, MemoryGroup, NodeProbe, ThreadState
from slurmtop.model.process import NodeProcess, NodeProcesses
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.stacks import Frame, ProcessStacks, ThreadStack
from slurmtop.model.verdict import Fate, SourceFate
from tests.triage.builders import NOW, live, log
from tests.triage.logs_told import say

SITE = "/opt/conda/lib/python3.11/site-packages/"
LIB = "/opt/conda/lib/python3.11/"
RUN = "/home/anna/run/"
Stack = tuple[Frame, ...]
_FUTEX, _SLEEP, _POLL = "202", "230", "7"


def stack(*calls: str) -> Stack:
    """``file:line function``; ``@`` stands for site-packages, ``%`` for the standard library."""
    out = []
    for call in calls:
        place, function = call.split(" ", 1)
        path, line = place.rsplit(":", 1)
        head = SITE if path[0] == "@" else LIB if path[0] == "%" else RUN
        out.append(Frame(function, head + path.lstrip("@%"), int(line)))
    return tuple(out)


@dataclass(frozen=True, kw_only=True)
class Do:
    """What one process does. ``then`` is its stack at the second look, None: the same one."""

    calls: Stack = ()
    then: Stack | None = None
    state: str = "S"
    wchan: str | None = "futex_wait_queue"
    cpu: float = 0.02
    read: int = 0
    write: int = 0
    chars: int = 0
    gil: bool = False
    more: tuple[tuple[str, Stack], ...] = ()
    """Other Python threads."""
    below: tuple["Do", ...] = ()
    """Children: workers of a loader, compilers."""
    tracer: int | None = 0
    file: str | None = None
    name: str = "python"
    argv: tuple[str, ...] = ("python", "train.py")
    gone: bool = False
    no_stack: bool = False
    wakes: float | None = None
    """How often a second the main thread is put on a CPU; None: as its state says."""


def spins(*calls: str, then: Stack | None = None, **more: object) -> Do:
    """Waits for its GPU: CUDA spins on the CPU meanwhile."""
    values: dict[str, object] = {"state": "R", "wchan": "0", "cpu": 1.0, **more}
    return Do(calls=stack(*calls), then=then, **values)  # type: ignore[arg-type]


def waits(*calls: str, **more: object) -> Do:
    return Do(calls=stack(*calls), **more)  # type: ignore[arg-type]


@dataclass(kw_only=True)
class Build:
    """One job of ``size`` ranks, ``per`` of them a node, all doing ``usual`` but those in
    ``odd``."""

    size: int
    usual: Do
    odd: Mapping[int, Do] = field(default_factory=dict)
    per: int = 4
    launcher: str = "torchrun"
    stacks: bool = True
    looks: int = 2
    apart: float = 6.0
    quiet: float | None = 400.0
    grew: bool | None = False
    steps: bool = False
    age: float = 10_800.0
    silent: Sequence[str] = ()
    states: tuple[tuple[str, str], ...] = ()
    gpu: Mapping[int, tuple[float, float]] | tuple[float, float] | None = None
    """Utilisation and watts of 700, of all or by rank."""
    gpu_silent: Sequence[str] = ()
    ports: Mapping[str, str] | None = None
    kernel: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    oom: Mapping[str, int] = field(default_factory=dict)
    text: str = "step 980/5000 loss=2.1\nstep 981/5000 loss=2.1\n"
    argv: tuple[str, ...] = ("python", "train.py")
    readable: bool = True
    step: str = "0"
    port: int = 29500
    pid0: int = 20_000
    slurm: str = "RUNNING"
    attempt: int = 0
    before: int = 0
    """Ranks of the same world that another launch has started, on nodes before these."""
    world: int | None = None
    sweep: bool = False  # No thread of a task carries data to others.
    alone: bool = False  # Each task has a group of its own.

    def hosts(self) -> list[str]:
        count, first = -(-self.size // self.per), self.before // self.per
        return [f"gpu{first + i + 1:02d}" for i in range(count)]

    def pid(self, rank: int) -> int:
        return self.pid0 + 100 + 50 * (rank % self.per)

    def facts(self) -> JobFacts:
        return facts_of(self)


def facts_of(*parts: Build) -> JobFacts:
    """The facts of a job with one training (or several, step by step)."""
    a = parts[0]
    hosts = sorted({host for part in parts for host in part.hosts()})
    starts = [NOW - timedelta(seconds=1 + a.apart * i) for i in range(a.looks)][::-1]
    samples = [_sample(parts, hosts, at, i) for i, at in enumerate(starts)]
    motion = LogMotion(
        grew=a.grew if a.looks > 1 else None, new_steps=a.steps and a.looks > 1, quiet_s=a.quiet
    )
    nodes = LiveFacts(
        job="4711", hosts=tuple(hosts), samples=tuple(samples), log=motion, node_states=a.states
    )
    said = say(a.text) if a.text and a.quiet is not None else None
    changes = {"nodes": ",".join(hosts), "node_count": len(hosts)}
    changes |= {"start": NOW - timedelta(seconds=a.age + 30)}
    return live(
        a.slurm,
        logs=(log(quiet_s=a.quiet),) if a.quiet is not None else (),
        logs_say=said,
        live=nodes,
        job_changes=changes,
        viewer="anna",
    )


def _sample(parts: Sequence[Build], hosts: Sequence[str], at: object, nth: int) -> Sample:
    probes, stacks = [], []
    for host in hosts:
        a = parts[0]
        if host in a.silent:
            words = Failure(Trouble.TIMEOUT, f"{host} did not answer within 8 s")
            probes.append(NodeProbe(host=host, at=at, failure=words))  # type: ignore[arg-type]
            continue
        seen = _Node(host, at, nth)
        for part in parts:
            seen.fill(part)
        probes.append(seen.probe(a))
        stacks += seen.stacks if a.stacks else []
    return Sample(
        began_at=at,  # type: ignore[arg-type]
        probes=tuple(probes),
        stacks=tuple(stacks),
        stacks_asked=True,
        whole=True,
    )


class _Node:
    def __init__(self, host: str, at: object, nth: int) -> None:
        self.host, self.at, self.nth = host, at, nth
        self.processes: list[NodeProcess] = []
        self.activity: list[Activity] = []
        self.stacks: list[ProcessStacks] = []
        self.gpus: list[GpuSample] = []
        self.on_gpu: list[GpuProcess] = []

    def fill(self, a: Build) -> None:
        if self.host not in a.hosts():
            return
        node = a.hosts().index(self.host)
        ranks = range(node * a.per, min(a.size, (node + 1) * a.per))
        top = self._agents(a, node)
        for rank in ranks:
            do = a.odd.get(rank, a.usual)
            if a.argv != ("python", "train.py"):
                do = dataclasses.replace(do, argv=a.argv)
            local = rank - node * a.per
            if not do.gone:
                self._process(a, do, a.pid(rank), top, _env(a, rank + a.before, local, node))
            if a.gpu is not None:
                self._gpu(a, rank, local, do)

    def _agents(self, a: Build, node: int) -> int:
        chain: list[tuple[str, tuple[str, ...]]] = [
            ("slurmstepd", (f"slurmstepd: [4711.{a.step}]",))
        ]
        torchrun = ("/opt/conda/bin/python", "/opt/conda/bin/torchrun", "train.py")
        chain += [("torchrun", torchrun)] if a.launcher == "torchrun" else []
        chain += [("prted", ("prted",))] if a.launcher == "mpirun" else []
        above = 1
        for i, (name, argv) in enumerate(chain):
            env = (("SLURM_JOB_ID", "4711"), ("SLURM_PROCID", str(node))) if i else None
            idle = Do(name=name, argv=argv, wchan="hrtimer_nanosleep")
            first = a.odd.get(node * a.per, a.usual)
            if i and first.wchan == "do_freezer_trap":
                # A cgroup is frozen as a whole.
                idle = dataclasses.replace(idle, wchan=first.wchan, cpu=0.0)
            self._process(a, idle, a.pid0 + i, above, env, agent=True)
            above = a.pid0 + i
        return above

    def _process(
        self,
        a: Build,
        do: Do,
        pid: int,
        ppid: int,
        env: tuple[tuple[str, str], ...] | None,
        *,
        agent: bool = False,
    ) -> None:
        begun = 500_000 + pid
        self.processes.append(
            NodeProcess(
                host=self.host,
                pid=pid,
                start_ticks=begun,
                ppid=ppid,
                uid=20011,
                user="anna",
                state=do.state,
                name=do.name,
                argv=do.argv if do.state != "Z" else (),
                started_at=NOW - timedelta(seconds=a.age),
                job="4711",
                step=a.step,
                env=env if a.readable else None,
                threads=1 if agent else 40,
            )
        )
        if a.readable or agent:
            self.activity.append(self._active(do, pid, begun, a))
        if not agent and a.readable and not do.no_stack and do.state != "Z":
            self.stacks.append(self._stack(do, pid, begun))
        for i, child in enumerate(do.below):
            self._process(a, child, pid + 1 + i, pid, env)

    def _active(self, do: Do, pid: int, begun: int, a: Build) -> Activity:
        base = 50.0 + self.nth * a.apart
        usual = 3.0 if do.state == "R" else 1.0 if do.cpu else 0.0
        wakes = usual if do.wakes is None else do.wakes

        def count(t: float) -> Counters:
            return Counters(
                cpu_ticks=100_000 + int(do.cpu * 100 * t),
                read_bytes=10**9 + int(do.read * t),
                written_bytes=10**9 + int(do.write * t),
                read_chars=2 * 10**9 + int((do.read + do.chars) * t),
                written_chars=2 * 10**9 + int(do.write * t),
                switches=40_000 + int(wakes * t),
            )

        calls = {"R": "running"}.get(do.state, _call(do.wchan))
        main = ThreadState(tid=pid, state=do.state, name=do.name, wchan=do.wchan)
        quiet = ThreadState(tid=pid + 5, state=_rest(do), name="pt_nccl_watchdg", wchan=do.wchan)
        return Activity(
            host=self.host,
            pid=pid,
            start_ticks=begun,
            state=do.state,
            wchan=do.wchan,
            syscall=calls,
            open_file=do.file,
            tracer_pid=do.tracer,
            first=count(base),
            second=count(base + 0.4),
            between_s=0.4,
            threads=(main, *(() if a.sweep else (quiet, *self._keeper(a, pid)))),
        )

    def _keeper(self, a: Build, pid: int) -> tuple[ThreadState, ...]:
        """Rank 0 keeps the meeting point of its group."""
        first = a.alone or (self.host, pid) == (a.hosts()[0], a.pid(0))
        keeper = ThreadState(tid=pid + 6, state="S", name="pt_tcpstore_uv", wchan="ep_poll")
        return (keeper,) if first and a.launcher in ("srun", "tasks") else ()

    def _stack(self, do: Do, pid: int, begun: int) -> ProcessStacks:
        calls = do.then if self.nth and do.then is not None else do.calls
        running = do.state == "R"
        threads = [
            ThreadStack(name="MainThread", os_id=pid, active=running, gil=do.gil, frames=calls)
        ]
        threads += [
            ThreadStack(name=name, os_id=pid + 7 + i, active=False, gil=False, frames=frames)
            for i, (name, frames) in enumerate(do.more)
        ]
        return ProcessStacks(
            host=self.host,
            pid=pid,
            start_ticks=begun,
            at=self.at,  # type: ignore[arg-type]
            threads=tuple(threads),
        )

    def _gpu(self, a: Build, rank: int, local: int, do: Do) -> None:
        util, watts = a.gpu[rank] if isinstance(a.gpu, Mapping) else a.gpu or (0.0, 0.0)
        uuid = f"GPU-{self.host}-{local}"
        bus = f"0000:{local + 10:02x}:00"
        self.gpus.append(
            GpuSample(
                index=local,
                uuid=uuid,
                bus_id=bus,
                host=self.host,
                name="NVIDIA H100 80GB HBM3",
                util_percent=util,
                power_w=watts,
                power_limit_w=700.0,
                mem_used_mib=60_000.0,
                mem_total_mib=81_559.0,
            )
        )
        if not do.gone:
            self.on_gpu.append(GpuProcess(pid=a.pid(rank), gpu_uuid=uuid, gpu_index=local))

    def probe(self, a: Build) -> NodeProbe:
        look = NodeProcesses(
            host=self.host,
            at=self.at,  # type: ignore[arg-type]
            processes=tuple(self.processes),
            node_at=self.at,  # type: ignore[arg-type]
            boot_id="b-" + self.host,
            hidden=not a.readable,
            ptrace_scope=None if a.stacks else 1,
        )
        told = dict.fromkeys(("processes", "environment", "activity"), Fate.ANSWERED)
        told |= {"memory events": Fate.ANSWERED, "kernel log": Fate.REFUSED}
        told |= {"stacks": Fate.ANSWERED if a.stacks else Fate.REFUSED}
        told |= {"gpus": Fate.ANSWERED if a.gpu else Fate.ABSENT, "network ports": Fate.ABSENT}
        told |= {"gpus": Fate.TIMED_OUT} if self.host in a.gpu_silent else {}
        told |= {"kernel log": Fate.ANSWERED} if self.host in a.kernel else {}
        nics: tuple[NicPort, ...] = ()
        if a.ports is not None:
            told["network ports"] = Fate.ANSWERED
            word = a.ports.get(self.host, "ACTIVE")
            nics = (NicPort(name="mlx5_0/1", kind="ib", state=word, rx_bytes=10**12),)  # type: ignore[arg-type]
        if not a.readable:
            told |= {"environment": Fate.REFUSED, "activity": Fate.REFUSED}
        gpus = NodeGpus(host=self.host, samples=tuple(self.gpus), processes=tuple(self.on_gpu))
        pids = tuple(one.pid for one in self.processes)
        return NodeProbe(
            host=self.host,
            at=self.at,  # type: ignore[arg-type]
            took_s=0.6,
            node_at=self.at,  # type: ignore[arg-type]
            processes=look,
            activity=tuple(self.activity),
            memory=(MemoryGroup(path="/job_4711", pids=pids, oom_kills=a.oom.get(self.host, 0)),),
            gpus=gpus if a.gpu and self.host not in a.gpu_silent else None,
            nics=nics,
            kernel_lines=a.kernel.get(self.host, ()),
            ptrace_scope=look.ptrace_scope,
            cpus=96,
            arch="x86_64",
            fates=tuple(
                SourceFate(source=name, fate=fate, hosts=(self.host,))
                for name, fate in told.items()
            ),
        )


def _rest(do: Do) -> str:
    return do.state if do.state in "TtD" and do.wchan != "x" else "S"


def _call(wchan: str | None) -> str | None:
    if wchan is None:
        return None
    for word, number in (("futex", _FUTEX), ("nanosleep", _SLEEP), ("poll", _POLL)):
        if word in wchan:
            return number
    return "0"


def _env(a: Build, rank: int, local: int, node: int) -> tuple[tuple[str, str], ...]:
    own = {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": a.step}
    if a.launcher == "torchrun":
        own |= {"SLURM_PROCID": str(node), "TORCHELASTIC_RUN_ID": "4711"}
        own |= {"TORCHELASTIC_RESTART_COUNT": str(a.attempt)}
        own |= {"TORCHELASTIC_MAX_RESTARTS": "3"}
    if a.launcher == "mpirun":
        own |= {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(a.size)}
        own |= {"OMPI_COMM_WORLD_LOCAL_RANK": str(local)}
    if a.launcher in ("srun", "tasks"):
        own |= {"SLURM_PROCID": str(rank), "SLURM_NTASKS": str(a.world or a.size)}
        own |= {"SLURM_LOCALID": str(local), "SLURM_STEP_NUM_TASKS": str(a.size)}
    if a.launcher in ("torchrun", "srun"):
        own |= {"RANK": str(rank), "WORLD_SIZE": str(a.world or a.size), "LOCAL_RANK": str(local)}
        own |= {"MASTER_ADDR": "gpu01", "MASTER_PORT": str(a.port)}
    return tuple(sorted(own.items()))
