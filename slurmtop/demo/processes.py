"""The processes of the simulated jobs on a node: who they are and what they are there for."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from slurmtop.demo.gpus import pid_of
from slurmtop.demo.jobs import DemoJob, Prepared
from slurmtop.demo.nodes import DemoNode
from slurmtop.demo.signal_words import NUMBERS
from slurmtop.demo.values import View, tasks_per_node

HZ = 100
UP_S = 5_000_000
"""How long the nodes had been up when the demo began."""
_USR1 = 1 << (NUMBERS["USR1"] - 1)
#: What Python itself catches (INT) and ignores (PIPE, XFSZ).
_PYTHON_CAUGHT, _PYTHON_IGNORED = 0x2, 0x1001000
_SHELL_CAUGHT = 0x10002


#: Processes that the data loader of one rank keeps, where it has any.
WORKERS = 4


class Kind(StrEnum):
    """What a process is there for."""

    SHELL = "shell"
    SRUN = "srun"
    AGENT = "agent"
    RANK = "rank"
    WORKER = "worker"
    """Of a data loader."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a job on a node."""

    job: DemoJob
    pid: int
    ppid: int
    step: str
    name: str
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    state: str = "S"
    caught: int = 0
    ignored: int = 0
    threads: int = 1
    kind: Kind = Kind.SHELL
    rank: int | None = None
    worker: int | None = None

    @property
    def start_ticks(self) -> int:
        return (UP_S + (self.job.start_t or 0)) * HZ + self.pid % HZ


def processes_on(view: View, node: DemoNode) -> Iterator[Process]:
    """Those of every job that runs there."""
    for job in sorted(view.world.busy.values(), key=lambda one: one.id):
        if job.running and node.name in job.nodes:
            yield from _of_job(job, node)


def _of_job(job: DemoJob, node: DemoNode) -> Iterator[Process]:
    spec, at = job.spec, job.nodes.index(node.name)
    base = pid_of(job, 0) - 4
    traps = _USR1 if spec.prepared is Prepared.TRAP else 0
    command = tuple(spec.step_command.split())
    shell = ("/bin/bash", f"/var/spool/slurmd/job{job.id:05}/slurm_script")
    if at == 0:
        yield Process(job, base, 1, "batch", "slurm_script", shell, caught=_SHELL_CAUGHT | traps)
        if spec.steps:
            yield Process(
                job, base + 1, base, "batch", "srun", ("srun", *command), threads=6, kind=Kind.SRUN
            )
    if not spec.steps or spec.story == "quiet":
        return
    ranks, parent = tasks_per_node(spec), 1
    torchrun = command[0] == "torchrun"
    if torchrun:
        ignored = _PYTHON_IGNORED | (_USR1 if spec.prepared is Prepared.RANKS else 0)
        env = _slurm_env(job, at, at)
        agent = ("/opt/venv/bin/python", "/opt/venv/bin/torchrun", *command[1:])
        parent = base + 3
        yield Process(
            job, parent, 1, "0", "torchrun", agent, env, "S", 0x4002, ignored, 9, Kind.AGENT
        )
    handler = _USR1 if spec.prepared is Prepared.RANKS else 0
    for local in range(ranks):
        rank = at * ranks + local
        env = _slurm_env(job, rank if not torchrun else at, at)
        if torchrun:
            env += _torch_env(job, rank, local, ranks)
        argv = ("/opt/venv/bin/python", "-u", command[-1])
        ignored = _PYTHON_IGNORED | (_USR1 if torchrun and not handler else 0)
        caught = _PYTHON_CAUGHT | handler
        pid = pid_of(job, local)
        main = Process(
            job, pid, parent, "0", "python", argv, env, "R", caught, ignored, 68, Kind.RANK, rank
        )
        yield main
        if spec.hang_s is not None:
            for number in range(WORKERS):
                own = 300_000 + (pid - 20_000) * WORKERS + number
                yield replace(
                    main, pid=own, ppid=pid, state="S", name="pt_data_worker", threads=2,
                    kind=Kind.WORKER, worker=number,
                )  # fmt: skip


def _slurm_env(job: DemoJob, procid: int, at: int) -> tuple[tuple[str, str], ...]:
    local = procid - at * tasks_per_node(job.spec)
    return (
        ("SLURM_JOB_ID", str(job.id)),
        ("SLURM_STEP_ID", "0"),
        ("SLURM_PROCID", str(procid)),
        ("SLURM_LOCALID", str(max(0, local))),
        ("SLURM_NTASKS", str(tasks_per_node(job.spec) * len(job.nodes))),
        ("SLURM_NODEID", str(at)),
        ("NCCL_DEBUG", "INFO"),
    )


def _torch_env(job: DemoJob, rank: int, local: int, ranks: int) -> tuple[tuple[str, str], ...]:
    return (
        ("RANK", str(rank)),
        ("LOCAL_RANK", str(local)),
        ("WORLD_SIZE", str(ranks * len(job.nodes))),
        ("LOCAL_WORLD_SIZE", str(ranks)),
        ("GROUP_RANK", str(rank // ranks)),
        ("MASTER_ADDR", job.nodes[0]),
        ("MASTER_PORT", "29500"),
        ("TORCHELASTIC_RESTART_COUNT", "0"),
    )
