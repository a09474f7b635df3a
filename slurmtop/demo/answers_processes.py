"""What a simulated node tells of its processes, and of what may be read there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from slurmtop.demo.gpus import pid_of
from slurmtop.demo.jobs import DemoJob, Prepared
from slurmtop.demo.nodes import DemoNode
from slurmtop.demo.signal_words import NUMBERS
from slurmtop.demo.values import View, tasks_per_node

HZ = 100
_UP_S = 5_000_000
"""How long the nodes had been up when the demo began."""
_USR1 = 1 << (NUMBERS["USR1"] - 1)
#: What Python itself catches (INT) and ignores (PIPE, XFSZ).
_PYTHON_CAUGHT, _PYTHON_IGNORED = 0x2, 0x1001000
_SHELL_CAUGHT = 0x10002


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

    @property
    def start_ticks(self) -> int:
        return (_UP_S + (self.job.start_t or 0)) * HZ + self.pid % HZ


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
            yield Process(job, base + 1, base, "batch", "srun", ("srun", *command), threads=6)
    if not spec.steps or spec.story == "quiet":
        return
    ranks, parent = tasks_per_node(spec), 1
    torchrun = command[0] == "torchrun"
    if torchrun:
        ignored = _PYTHON_IGNORED | (_USR1 if spec.prepared is Prepared.RANKS else 0)
        env = _slurm_env(job, at, at)
        agent = ("/opt/venv/bin/python", "/opt/venv/bin/torchrun", *command[1:])
        parent = base + 3
        yield Process(job, parent, 1, "0", "torchrun", agent, env, "S", 0x4002, ignored, 9)
    handler = _USR1 if spec.prepared is Prepared.RANKS else 0
    for local in range(ranks):
        rank = at * ranks + local
        env = _slurm_env(job, rank if not torchrun else at, at)
        if torchrun:
            env += _torch_env(job, rank, local, ranks)
        argv = ("/opt/venv/bin/python", "-u", command[-1])
        ignored = _PYTHON_IGNORED | (_USR1 if torchrun and not handler else 0)
        caught = _PYTHON_CAUGHT | handler
        yield Process(
            job, pid_of(job, local), parent, "0", "python", argv, env, "R", caught, ignored, 68
        )


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


def process_lines(view: View, node: DemoNode, words: Sequence[str]) -> str:
    """The answer of slurmtop's script for processes: one's own, and a named job's."""
    out = [
        "slurmtop-processes 1",
        "M self 99001",
        f"M time {int(view.when(view.t).timestamp())}",
        f"M uptime {_UP_S + view.t}.00 1.00",
        f"M hz {HZ}",
        f"M boot 7c0ffee0-0000-4000-8000-0000000000{node.name[-2:]}",
        "M ptrace 1",
    ]
    wanted = words[0] if words else None
    users: dict[int, str] = {}
    for one in processes_on(view, node):
        job = one.job
        if str(job.id) != wanted and not view.mine(job):
            continue
        users[job.spec.uid] = job.spec.user
        group = f"0::/system.slice/slurmstepd.scope/job_{job.id}/step_{one.step}/user/task_0"
        out += [
            f"S {one.pid} {one.start_ticks} {one.ppid} {one.state} {one.name}",
            f"U {one.pid} {job.spec.uid} {one.caught:016x} {one.ignored:016x} {one.threads}"
            f" {one.pid}",
            f"C {one.pid} {group}",
        ]
        if view.mine(job):
            out.append(f"R {one.pid}")
            out += [f"E {one.pid} {name}={value}" for name, value in one.env]
        out += [f"A {one.pid} {word}" for word in one.argv]
        out.append(f"T {one.pid} {one.start_ticks}")
    out += [f"N {uid} {name}" for uid, name in users.items()]
    return "".join(line + "\n" for line in [*out, "end"])


def access_lines(view: View, node: DemoNode, words: Sequence[str]) -> str:
    """The answer of slurmtop's script for what may be read; ``words`` may name one job."""
    own = [one for one in processes_on(view, node) if view.mine(one.job)]
    job = words[0] if words else ""
    inside = sum(1 for one in own if str(one.job.id) == job)
    pairs = [
        ("user", f"{view.uid} {view.user}"),
        ("groups", "users ml"),
        ("system", "Linux 5.15.0-122-generic x86_64"),
        ("ptrace", "1"),
        ("dmesg_restrict", "1"),
        ("dmesg", "1"),
        ("journal", "refused"),
        ("proc", "rw,nosuid,nodev,noexec,relatime"),
        ("sees_others", "yes"),
        ("driver", "yes"),
        ("cgroup", "0::/system.slice/sshd.service"),
        ("processes", f"{len(own)} 0 {inside}"),
        ("set", "NCCL_DEBUG=INFO"),
        ("tool", "nvidia-smi /usr/bin/nvidia-smi"),
        ("tool", "dcgmi /usr/bin/dcgmi"),
        ("tool", "amd-smi "),
        ("tool", "rocm-smi "),
        ("tool", "py-spy "),
        ("end", "1"),
    ]
    return "".join(f"{name}\t{value}\n" for name, value in pairs)
