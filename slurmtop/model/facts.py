"""All that was gathered about one job before anybody thinks about it.

``collect.facts`` fills these in; ``triage`` turns them into a verdict and does no I/O.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from slurmtop.model.collective_table import Table
from slurmtop.model.job import AccountingRecord, ExitMeaning, Job, JobDetail, ReasonInfo
from slurmtop.model.live import LiveFacts
from slurmtop.model.verdict import Evidence, Missing, Verdict


class LogStatus(StrEnum):
    READ = "read"
    ABSENT = "absent"
    """Not there (yet). Not an error: Slurm creates it when the job starts."""
    DENIED = "denied"
    HANGS = "hangs"
    """The mount did not answer in time."""
    NOT_A_FILE = "not a file"
    UNKNOWN_PATH = "unknown path"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class LogLine:
    """``number`` counts from 1; None where the start of the file was not read."""

    text: str
    number: int | None
    offset: int
    """Bytes from the start of the file to the start of the line."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A step counter that a training log printed, e.g. ``step 48213/100000``."""

    step: int
    total: int | None
    line: LogLine


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLines:
    """The newest lines of a log that tell a step, each a later one than the line before.

    ``lines`` are how many, some dozens at most; ``first`` and ``last`` their steps. ``span_s`` are
    the seconds from the first to the last by the lines' own stamps, ``pause_s`` the longest between
    two of them; None without stamps. ``told_s`` are the seconds of one step that a bar tells.
    ``begin`` is the first step of the whole log, None where it is later than ``last`` or not known.
    ``apart``: in front of them stands Slurm's word, or a launcher's, that a run before had ended.
    """

    lines: int
    first: int
    last: int
    span_s: float | None = None
    pause_s: float | None = None
    told_s: float | None = None
    begin: int | None = None
    apart: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """One log: what state it is in, its last line, its first error, its progress.

    ``label`` is stdout or stderr. ``complete`` is false where the middle was not read.
    """

    label: str
    path: str | None
    status: LogStatus
    why: str = ""
    size: int | None = None
    mtime: datetime | None = None
    last_line: LogLine | None = None
    first_error: LogLine | None = None
    slurm_line: LogLine | None = None
    """The last line that Slurm itself wrote (``slurmstepd: error: *** JOB …``)."""
    progress: Progress | None = None
    late_error: LogLine | None = None
    """The first error that stands after ``progress``; None where there is no progress."""
    steps: StepLines | None = None
    """How ``progress`` came about; None where there is none."""
    left_behind: int | None = None
    """Lines behind ``progress``, where those are more than mostly stand between two steps of this
    log (``progress`` None: steps stand at its beginning and none at its end); else None."""
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Died:
    """The one process that a signal ended before any other had ended, as its launcher told.

    ``signal`` is one by which a process crashes, or SIGKILL where no line says who sent it.
    ``task`` is srun's number, ``rank`` the global rank where a line tells it.
    """

    signal: int
    evidence: Evidence
    task: int | None = None
    rank: int | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsSay:
    """What the logs of a job's newest run tell by themselves, before Slurm's word is heard.

    ``hard``: an end was made that no later line takes back (a process ended, the watchdog took
    one down). ``moved_on``: steps stand behind the first failure, so that the job went on without
    what failed. ``only_newest`` is false where earlier runs may have written among these lines.
    ``attempt`` is the newest one that a launcher tells of; ``steps``: it has made steps;
    ``waited_s``: for how long a collective of it waited in vain, by the longest that is told;
    ``warned``: only warnings of those that wait tell of it, and nobody has given up;
    ``ended``: the ranks that have ended behind that, by their launcher.
    ``tables`` are the collectives of its groups, those with something odd first.
    """

    verdict: Verdict
    hard: bool = False
    moved_on: bool = False
    died: Died | None = None
    world_size: int | None = None
    seen_ranks: frozenset[int] = frozenset()
    launched: bool = False
    only_newest: bool = True
    attempt: int = 0
    steps: bool = False
    waited_s: float | None = None
    warned: bool = False
    ended: frozenset[int] = frozenset()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """Everything known about one job at ``now``.

    ``asked`` is the id as the person typed it. Sources that did not answer stand in
    ``missing``; ``job`` and ``detail`` are None once the controller has forgotten the job.
    ``controller_answered`` is false when nobody could say whether the job exists.
    """

    asked: str
    cluster: str
    now: datetime
    job: Job | None = None
    queue_at: datetime | None = None
    """When the queue showed ``job``, where it was not asked for these facts; else None."""
    detail: JobDetail | None = None
    siblings: tuple[Job, ...] = ()
    """The other records of the same array or het job."""
    history: tuple[AccountingRecord, ...] = ()
    """The newest run's rows of sacct: the job row first, then its steps."""
    controller_answered: bool = True
    accounting_answered: bool | None = None
    """None where sacct was not asked."""
    reason: ReasonInfo | None = None
    exit: ExitMeaning | None = None
    expected_start: datetime | None = None
    logs: tuple[LogFacts, ...] = ()
    logs_say: LogsSay | None = None
    """What the logs were judged to tell; None where that was not asked, or no log was read."""
    live: LiveFacts | None = None
    """What its nodes told while it runs; None where nobody looked there."""
    missing: tuple[Missing, ...] = ()
    viewer: str | None = None
    """Who asks; None where that is not known. Only what this user may do is offered."""
    viewer_uid: int | None = None
