"""What the programs have in common to say about a job, in Slurm's words."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from slurmtop.demo.jobs import DemoJob, Prepared, Spec
from slurmtop.demo.nodes import GPUS
from slurmtop.demo.text import fold_hosts, mem_text, task_list
from slurmtop.demo.world import World

NO_TASK = 4_294_967_294
LOGIN = "login1"
_SHORT = {
    "PENDING": "PD",
    "RUNNING": "R",
    "COMPLETED": "CD",
    "CANCELLED": "CA",
    "FAILED": "F",
    "TIMEOUT": "TO",
    "NODE_FAIL": "NF",
    "OUT_OF_MEMORY": "OOM",
    "COMPLETING": "CG",
}


@dataclass(frozen=True, slots=True)
class View:
    """The cluster as one person sees it. ``start`` is the date of second 0."""

    world: World
    start: datetime
    user: str
    uid: int
    memo: dict[str, dict[int, tuple[object, str]]] = field(default_factory=dict)
    """Lines already made for jobs that have not changed: by format, then by job."""

    @property
    def t(self) -> int:
        return self.world.t

    def when(self, t: int) -> datetime:
        return self.start + timedelta(seconds=t)

    def iso(self, t: int | None, otherwise: str = "N/A") -> str:
        """``2026-11-30T04:34:20``: without a zone, as all of Slurm prints it."""
        return otherwise if t is None else self.when(t).strftime("%Y-%m-%dT%H:%M:%S")

    def mine(self, job: DemoJob) -> bool:
        return job.spec.uid == self.uid


def state_word(job: DemoJob) -> str:
    return "COMPLETING" if job.completing else job.state


def state_short(job: DemoJob) -> str:
    return _SHORT[state_word(job)]


def id_text(job: DemoJob) -> str:
    """As squeue prints it with ``SLURM_BITSTR_LEN=0``: nothing is cut."""
    if job.tasks is None:
        return job.id_text()
    throttle = f"%{job.spec.throttle}" if job.spec.throttle else ""
    return job.id_text(task_list(job.tasks) + throttle)


def node_list(job: DemoJob) -> str:
    return fold_hosts(job.nodes)


def tres(job: DemoJob, *, allocated: bool) -> str:
    """``cpu=16,mem=64G,node=2,billing=16,gres/gpu=8,gres/gpu:h100=8``."""
    return ",".join(f"{name}={value}" for name, value in _tres_pairs(job, allocated))


def tres_by_name(job: DemoJob, *, allocated: bool, step: bool = False) -> str:
    """The same as sacct orders it; a step has no billing."""
    pairs = [
        (name, value)
        for name, value in _tres_pairs(job, allocated)
        if not (step and name == "billing")
    ]
    return ",".join(sorted(f"{name}={value}" for name, value in pairs))


def _tres_pairs(job: DemoJob, allocated: bool) -> list[tuple[str, str]]:
    spec, nodes = job.spec, job.node_count
    pairs = [
        ("cpu", str(spec.cpus * nodes)),
        ("mem", mem_text(spec.mem_mib * nodes)),
        ("node", str(nodes)),
        ("billing", str(spec.cpus * nodes)),
    ]
    if spec.gpus:
        pairs.append(("gres/gpu", str(spec.gpus * nodes)))
        if allocated or spec.typed_gpus:
            pairs.append(("gres/gpu:h100", str(spec.gpus * nodes)))
    return pairs


def tasks_per_node(spec: Spec) -> int:
    return max(1, min(spec.gpus, GPUS))


def derived_exit(job: DemoJob) -> tuple[int, int]:
    """The highest exit of the steps, as far as a step failed by itself."""
    failed = job.state in ("FAILED", "OUT_OF_MEMORY") and job.spec.steps
    return derived_code(job.state, job.exit) if failed else (0, 0)


def derived_code(state: str, exit: tuple[int, int]) -> tuple[int, int]:
    """What a job's exit says of its step: the script hands 128 and the signal on, and a batch
    shell that died took a step with it that was fine."""
    code, signal = exit
    if code > 128:
        return 0, code - 128
    return (0, 0) if state == "FAILED" and signal else exit


def steps_of(job: DemoJob) -> tuple[str, ...]:
    """The steps of a run, in Slurm's order; only the leader of a het job has a batch shell."""
    steps = ("0",) if job.spec.steps else ()
    return steps if job.het_offset else (*steps, "batch")


def step_name(spec: Spec) -> str:
    """The name of what srun starts: a shell where one stands in front of the launcher."""
    return "bash" if spec.prepared is Prepared.RANKS else spec.step_command.split()[0]


def last_look(job: DemoJob) -> int:
    """When the scheduler last thought about the job."""
    return job.submit_t if job.start_t is None else job.start_t


def dependency(view: View, job: DemoJob) -> str:
    word = view.world.dependency_word(job)
    return "(null)" if word is None else f"afterok:{job.spec.depends_on}({word})"


def raw_path(job: DemoJob, pattern: str) -> str:
    """Joined to the work folder, with the pattern left in it."""
    return pattern if pattern.startswith("/") else f"{job.spec.workdir}/{pattern}"


def path_of(job: DemoJob, pattern: str) -> str:
    """The pattern filled in, as scontrol prints it."""
    task = str(NO_TASK if job.tasks is not None or job.task is None else job.task)
    filled = raw_path(job, pattern).replace("%%", "\0")
    for mark, value in (
        ("%A", str(job.array_id if job.array_id is not None else job.id)),
        ("%a", task),
        ("%j", str(job.id)),
        ("%x", job.spec.name),
        ("%u", job.spec.user),
        ("%N", job.nodes[0] if job.nodes else ""),
    ):
        filled = filled.replace(mark, value)
    return filled.replace("\0", "%")


def script_path(spec: Spec) -> str | None:
    return None if spec.script is None else f"{spec.workdir}/{spec.script}"


def default_stdout(job: DemoJob) -> str:
    """An array without ``--output`` writes one file a task."""
    if job.array_id is not None and job.spec.stdout == "slurm-%j.out":
        return "slurm-%A_%a.out"
    return job.spec.stdout
