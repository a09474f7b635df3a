"""What a job of the simulated cluster is: what was asked for, and what has become of it.

Times are whole seconds since the demo began; what happened before it is negative.
"""

from dataclasses import dataclass, field
from enum import StrEnum

#: Who is here: name to (uid, account, home is closed to others).
USERS: dict[str, tuple[int, str, bool]] = {
    "root": (0, "root", True),
    "alice": (1001, "ml", False),
    "bob": (1002, "ml", False),
    "carol": (1003, "vision", True),
    "dave": (1004, "bio", False),
}
ME = "alice"


class Ending(StrEnum):
    """How a job ends when nobody interferes."""

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    TIMEOUT = "TIMEOUT"
    NODE_FAIL = "NODE_FAIL"
    CANCELLED = "CANCELLED"


class Prepared(StrEnum):
    """What in a job is ready for USR1; whatever else gets it dies of it."""

    TRAP = "trap"
    """The batch shell, which traps it while it waits for srun."""
    RANKS = "ranks"
    """The training processes; the launcher above them ignores it."""
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What ``sbatch`` was given, and how the job behaves.

    ``gpus``, ``cpus`` and ``mem_mib`` count per node. ``run_s`` is how long it runs when left
    alone; None runs into its time limit. ``hang_s`` is when its log goes silent.
    ``depends_on`` is the id of an ``afterok`` dependency. ``fixed_reason`` keeps it waiting
    for good. ``story`` names the writer of its log, ``error`` the exception that it fails with.
    ``retries`` is how often its script requeues it after a failure.
    """

    name: str
    user: str = ME
    partition: str = "gpu"
    qos: str = "normal"
    nodes: int = 1
    gpus: int = 8
    typed_gpus: bool = True
    cpus: int = 128
    mem_mib: int = 1_920_000
    limit_s: int = 86_400
    run_s: int | None = None
    ending: Ending = Ending.COMPLETED
    exit_code: int = 0
    hang_s: int | None = None
    story: str = "pretrain"
    workdir: str = "/shared/alice"
    stdout: str = "slurm-%j.out"
    stderr: str | None = None
    script: str | None = "train.sbatch"
    step_command: str = "python train.py"
    steps: bool = True
    prepared: Prepared = Prepared.TRAP
    error: str | None = None
    retries: int = 0
    requeue: bool = True
    append: bool = False
    comment: str | None = None
    depends_on: int | None = None
    begin_at: int | None = None
    held: bool = False
    req_nodes: tuple[str, ...] = ()
    fixed_reason: str | None = None
    array: tuple[int, int] | None = None
    """First task and number of tasks."""
    throttle: int | None = None

    @property
    def uid(self) -> int:
        return USERS[self.user][0]

    @property
    def account(self) -> str:
        return USERS[self.user][1]

    @property
    def closed(self) -> bool:
        """Others may not read what lies in the owner's folders."""
        return USERS[self.user][2]

    @property
    def gres(self) -> str | None:
        """``gpu:h100:8`` as asked for, or None."""
        if not self.gpus:
            return None
        return f"gpu:h100:{self.gpus}" if self.typed_gpus else f"gpu:{self.gpus}"


@dataclass(slots=True)
class Run:
    """One start of a job on its nodes. ``state`` is None while it goes on."""

    submit_t: int
    start_t: int
    nodes: tuple[str, ...]
    end_t: int | None = None
    state: str | None = None
    exit: tuple[int, int] = (0, 0)
    by_uid: int | None = None
    marks: list[tuple[int, str]] = field(default_factory=list)
    """Lines that something from outside made the job write, with their time."""
    saved: list[tuple[int, int]] = field(default_factory=list)
    """(time, step) of checkpoints that somebody asked for; one that the end came before is
    lost."""
    step_exit: tuple[int, int] | None = None
    """Of a run whose script requeued the job: how its step had failed before."""
    requeued_t: int | None = None
    """When a run that was over was put back; accounting takes that for its end."""


@dataclass(slots=True, kw_only=True)
class DemoJob:
    """One record of the controller. ``state`` is the base word.

    ``completing`` is set while the nodes of an ended run are being cleaned up; ``ends_at`` is
    when the present run will end by itself. ``tasks`` holds the tasks of an array's waiting
    rest and is None for everything else.
    """

    id: int
    spec: Spec
    submit_t: int
    priority: int
    normal_priority: int = 0
    """What ``release`` gives back."""
    state: str = "PENDING"
    reason: str = "None"
    completing: bool = False
    ends_at: int | None = None
    start_t: int | None = None
    end_t: int | None = None
    eligible_t: int | None = None
    expected_t: int | None = None
    limit_s: int = 0
    nodes: tuple[str, ...] = ()
    gpu_ids: dict[str, tuple[int, ...]] = field(default_factory=dict)
    exit: tuple[int, int] = (0, 0)
    by_uid: int | None = None
    restarts: int = 0
    held: bool = False
    requeue_held: bool = False
    begin_t: int | None = None
    exc_nodes: tuple[str, ...] = ()
    array_id: int | None = None
    task: int | None = None
    tasks: list[int] | None = None
    het_id: int | None = None
    het_offset: int = 0
    het_ids: tuple[int, ...] = ()
    runs: list[Run] = field(default_factory=list)
    moves: int = 0
    """Counts changes of state, so that an event made for an older one is dropped."""

    @property
    def pending(self) -> bool:
        return self.state == "PENDING"

    @property
    def running(self) -> bool:
        return self.state == "RUNNING"

    @property
    def live(self) -> bool:
        """In the queue as squeue shows it by default."""
        return self.pending or self.running or self.completing

    @property
    def run(self) -> Run | None:
        """The newest run."""
        return self.runs[-1] if self.runs else None

    @property
    def started(self) -> bool:
        """Has the present attempt been on its nodes? Every requeue used up one run."""
        return len(self.runs) > self.restarts

    @property
    def node_count(self) -> int:
        return len(self.nodes) or self.spec.nodes

    def used_s(self, t: int) -> int:
        """Seconds of the present or last run; 0 while it waits."""
        if self.pending or self.start_t is None:
            return 0
        return max(0, (t if self.end_t is None else self.end_t) - self.start_t)

    def id_text(self, tasks: str = "") -> str:
        """The id as squeue prints it; ``tasks`` is the text in an array's brackets."""
        if self.tasks is not None:
            return f"{self.array_id}_[{tasks}]"
        if self.task is not None:
            return f"{self.array_id}_{self.task}"
        if self.het_id is not None:
            return f"{self.het_id}+{self.het_offset}"
        return str(self.id)
