"""The batch script that a job was submitted with, and what it is prepared for."""

from dataclasses import dataclass
from enum import StrEnum

SHELLS = frozenset({"bash", "sh", "dash", "ksh", "zsh"})


class ScriptStatus(StrEnum):
    READ = "read"
    NONE = "none"
    """An interactive job (salloc, srun) has no batch script."""
    DENIED = "denied"
    FORGOTTEN = "forgotten"
    """The controller no longer knows the job."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchScript:
    """``text`` is as it was submitted (raw, hostile); ``why`` is a sentence where there is none.

    ``cut`` means that the script is longer than what was read.
    """

    status: ScriptStatus
    text: str = ""
    why: str = ""
    cut: bool = False


@dataclass(frozen=True, slots=True)
class SignalRequest:
    """``#SBATCH --signal=[R|B:]USR1@120``: what Slurm itself sends before the time limit.

    ``signal`` is the name without SIG, or the number as written. ``before_s`` is seconds before
    the end (Slurm may send it up to 60 s earlier). ``to_batch`` is ``B:``: to the batch shell
    only; without it to the steps and not to the shell.
    """

    signal: str
    before_s: int
    to_batch: bool
    line: int


@dataclass(frozen=True, slots=True)
class Trap:
    """``trap 'ACTION' USR1 TERM`` in line ``line`` (from 1). An empty action ignores the signal,
    and what the shell starts on the same node inherits that; the tasks of an srun do not (slurmd
    starts them). ``resets`` is ``trap - USR1``. ``signals`` are names without SIG, and EXIT, ERR.

    ``runs`` are the commands of the action, in order, a function of the script looked into:
    ``("echo", "scontrol requeue", "exit")``. ``maybe`` is a trap behind a condition.
    ``ends`` says in words how the action ends the script or its work, "" where it does not;
    ``waits`` is an action that waits for the work. ``doubt`` says why it is not certain what the
    trap does; ``indirect`` is one that names its signals by a variable.
    """

    signals: tuple[str, ...]
    action: str
    line: int
    resets: bool = False
    runs: tuple[str, ...] = ()
    maybe: bool = False
    ends: str = ""
    waits: bool = False
    doubt: str = ""
    indirect: bool = False

    @property
    def ignores(self) -> bool:
        return not self.resets and not self.action


@dataclass(frozen=True, slots=True)
class Wait:
    """A ``wait`` of the batch shell. A signal with a trap ends it at once, so that the script
    goes on behind it; ``loops`` is a wait in a loop, which comes back."""

    line: int
    loops: bool = False


class Does(StrEnum):
    """What a process may do with a signal, as far as its shell set it up."""

    DEFAULT = "default"
    HANDLES = "handles"
    IGNORES = "ignores"


@dataclass(frozen=True, slots=True)
class Setting:
    """What is set for ``signal`` ("" for all that no other setting names): ``may`` holds one
    where it is certain, several where the text leaves it open, and ``why`` then says what does.
    ``line`` is that of ``trap``, or of what leaves it open."""

    signal: str
    may: frozenset[Does]
    line: int | None = None
    why: str = ""
    trap: Trap | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How a shell runs, as far as signals go. ``settings`` hold for as long as its work runs.

    ``front`` is the line of a foreground command behind which a trap has to wait; ``waits`` is a
    ``wait`` that it surely comes to, ``waits_on`` one that comes back once a trap has ended it.
    ``errexit`` is the line of a ``set -e`` that ends the script behind such a wait. ``replaced``
    is ``exec``, ``may_exec`` the line of one that is run only in some cases.
    """

    settings: tuple[Setting, ...] = ()
    front: int | None = None
    waits: bool = False
    waits_on: bool = False
    errexit: int | None = None
    replaced: bool = False
    may_exec: int | None = None


class Launcher(StrEnum):
    """What starts the work in a line of a script."""

    SRUN = "srun"
    MPIRUN = "mpirun"
    TORCHRUN = "torchrun"
    """torchrun, ``python -m torch.distributed.run``, accelerate, deepspeed: an agent that starts
    the ranks and dies of what it does not handle."""
    PYTHON = "python"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One line that starts work: ``srun --cpu-bind=none torchrun … train.py &``.

    ``outer`` is what the shell itself starts, ``inner`` what runs in the end of that (of
    ``srun torchrun train.py``: SRUN and TORCHRUN; of ``python train.py``: PYTHON twice).
    ``background`` is true for ``&``; ``waited`` where a ``wait`` follows it. ``execs`` is
    ``exec …``: the shell is replaced, and its traps with it. ``traps`` are those of a shell in
    between (``srun bash -c 'trap "" USR1; exec torchrun …'``); of an srun only those behind it.
    ``settings`` is what its program starts with, ``between`` what holds for those shells.

    ``program`` is what runs in the end (``train.py``, ``sleep``), "" where it cannot be told.
    ``stays`` are programs in between that stay as parents and get the signal too (``bash`` of a
    ``bash -c`` that does more than exec, ``timeout``, ``nsys``), ``around`` those above an srun,
    which are no part of its step. ``piped`` are the other
    commands of its pipeline (``tee``). ``loops`` is a launch in a loop.
    """

    line: int
    text: str
    outer: Launcher
    inner: Launcher
    background: bool = False
    waited: bool = False
    execs: bool = False
    traps: tuple[Trap, ...] = ()
    settings: tuple[Setting, ...] = ()
    between: tuple[Setting, ...] = ()
    program: str = ""
    stays: tuple[str, ...] = ()
    around: tuple[str, ...] = ()
    piped: tuple[str, ...] = ()
    loops: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptReading:
    """What a batch script says of itself. ``language`` is the interpreter's name (bash, sh,
    python3 …); for anything but a shell only the directives are read.

    ``directives`` are (line, option as written, value or None). ``open_mode`` is append,
    truncate or None where it is not said. ``requeues_itself`` is the line of a ``scontrol
    requeue``. ``unsure`` are sentences about what could not be told; ``complete`` is false where
    commands were not read at all, so that "there is no trap" is not known.
    """

    language: str = "bash"
    directives: tuple[tuple[int, str, str | None], ...] = ()
    signal: SignalRequest | None = None
    traps: tuple[Trap, ...] = ()
    launches: tuple[Launch, ...] = ()
    waits: tuple[Wait, ...] = ()
    open_mode: str | None = None
    requeue: bool | None = None
    requeues_itself: int | None = None
    course: Course = Course()
    unsure: tuple[str, ...] = ()
    complete: bool = True

    @property
    def by_shell(self) -> bool:
        """Is it a shell that runs the script?"""
        return self.language in SHELLS


class Recipient(StrEnum):
    """Who gets a signal (measured on Slurm 22.05, 24.11 and 26.05)."""

    STEPS = "steps"
    """All that srun started; not the batch shell (``scancel --signal``)."""
    STEP = "step"
    """One step (``scancel --signal … 4711.0``)."""
    BATCH = "batch shell"
    """The batch shell and not its children (``--batch``)."""
    EVERYTHING = "everything"
    """The batch shell, its children, and the steps (``--full``)."""
    RANKS = "rank processes"
    """The rank processes alone, by pid on their nodes."""


class Fate(StrEnum):
    """What a signal does to one of those who get it."""

    HANDLES = "handles it"
    IGNORES = "ignores it"
    DIES = "dies of it"
    CONTINUES = "goes on"
    """CONT, or a signal whose default is to do nothing."""
    STOPS = "is stopped"
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Reaction:
    """``who`` gets the signal (``batch shell``, ``srun step: torchrun agent``), and what it does.

    ``why`` is the ground for it, in words; ``line`` where in the script it stands. ``ends_job``
    is true where the signal is handled and the script then comes to its end. ``count`` is how many
    processes it stands for, where they were looked at.
    """

    who: str
    fate: Fate
    why: str
    line: int | None = None
    ends_job: bool = False
    count: int = 1
