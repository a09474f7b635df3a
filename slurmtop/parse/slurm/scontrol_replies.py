"""What ``scontrol hold``, ``release``, ``requeue``, ``requeuehold`` and ``update`` said of jobs.

Source: stderr and exit status. One line a job that was refused, or one line for each group of an
array's tasks, the good ones too; brackets stand around a task list from 26.05 on::

    Access/permission denied for job 8702
    4711_1-19: Job has already finished
    4711_[20-99]: No error

Hold and release add ``slurm_suspend error: …``, words of another command that mean nothing. The
exit status is 1 even where all but one task was changed, and 0 proves nothing.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from slurmtop.model.ids import JobId
from slurmtop.model.snapshot import Trouble
from slurmtop.parse.slurm.failures import explain_failure
from slurmtop.parse.slurm.ids import parse_job_id


class ReplyKind(StrEnum):
    TAKEN = "taken"
    """``No error``: these tasks were changed."""
    SILENT = "silent"
    """Nothing was said, and that proves nothing."""
    UNKNOWN_JOB = "unknown-job"
    DENIED = "denied"
    FINISHED = "finished"
    PENDING = "pending"
    """A requeue of a job that waits."""
    NOT_PENDING = "not-pending"
    """A change that only a waiting job can get."""
    DISABLED = "disabled"
    """A requeue of a job with ``Requeue=0``."""
    BATCH_ONLY = "batch-only"
    HET_PART = "het-part"
    BUSY = "busy"
    """In a state in which nothing can be changed for now."""
    BAD_VALUE = "bad-value"
    """A time limit or a node name that is not accepted."""
    UNHEARD = "unheard"
    """The controller may not have got the request at all."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class ScontrolSays:
    """One thing said about one job or some tasks of it, or (``job`` None) about the call.

    ``words`` are Slurm's own, raw.
    """

    job: JobId | None
    kind: ReplyKind
    words: str


_FOR_JOB = re.compile(r"(?P<why>\S.*?) for job (?P<job>\d\S*)\s*", re.ASCII)
_TASKS = re.compile(
    r"(?P<base>\d{1,10})(?P<rest>_\[?[\d,:%*.-]+\]?|\+\d+)?: (?P<why>\S.*)", re.ASCII
)
_MISLEADING = re.compile(r"slurm_suspend error:")

_KINDS = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"^no error$", ReplyKind.TAKEN),
        (r"invalid job id|no such job|unspecified job", ReplyKind.UNKNOWN_JOB),
        (r"access/permission denied|invalid user id", ReplyKind.DENIED),
        (r"already finished|already completing or completed", ReplyKind.FINISHED),
        (r"no longer pending", ReplyKind.NOT_PENDING),
        (r"job is pending execution", ReplyKind.PENDING),
        (r"presently disabled", ReplyKind.DISABLED),
        (r"only batch jobs", ReplyKind.BATCH_ONLY),
        (r"heterogeneous job", ReplyKind.HET_PART),
        (r"can ?not be altered now|transitional state", ReplyKind.BUSY),
        (r"time limit is invalid|invalid node name|invalid time", ReplyKind.BAD_VALUE),
        (
            r"timed out|unable to contact|connection refused|unexpected message|zero bytes",
            ReplyKind.UNHEARD,
        ),
    )
)


def parse_scontrol_replies(rc: int | None, stderr: bytes | str) -> tuple[ScontrolSays, ...]:
    """What was said, in order; at least one entry. Never raises.

    ``rc`` None means that scontrol was stopped at our time limit.
    """
    text = stderr.decode("utf-8", "replace") if isinstance(stderr, bytes) else stderr
    said: list[ScontrolSays] = []
    misleading: list[str] = []
    for raw in text.splitlines():
        line = raw.strip()
        if not line:
            continue
        if _MISLEADING.match(line):
            misleading.append(line.partition(":")[2].strip())
            continue
        said.append(_one(line))
    if said:
        return tuple(said)
    if rc is None:
        words = "scontrol did not end in time and was stopped"
        return (ScontrolSays(None, ReplyKind.UNHEARD, words),)
    if misleading:
        return (ScontrolSays(None, _kind_of(misleading[0]), misleading[0]),)
    if rc == 0:
        return (ScontrolSays(None, ReplyKind.SILENT, ""),)
    return (ScontrolSays(None, ReplyKind.OTHER, f"scontrol ended with status {rc} and no word"),)


def _one(line: str) -> ScontrolSays:
    about = _FOR_JOB.fullmatch(line)
    if about is not None:
        job = parse_job_id(about["job"])
        if job.base:
            return ScontrolSays(job, _kind_of(about["why"]), about["why"])
    tasks = _TASKS.fullmatch(line)
    if tasks is not None:
        return ScontrolSays(
            _job(tasks["base"], tasks["rest"] or ""), _kind_of(tasks["why"]), tasks["why"]
        )
    words = line.removeprefix("scontrol: error: ")
    kind = _kind_of(words)
    # A word about no job in particular must not be taken as one about each of them.
    if kind is ReplyKind.OTHER and explain_failure("scontrol", 1, line).trouble in (
        Trouble.DOWN,
        Trouble.BUSY,
        Trouble.AUTH,
        Trouble.TIMEOUT,
        Trouble.RATE_LIMITED,
    ):
        kind = ReplyKind.UNHEARD
    return ScontrolSays(None, kind, words)


def _job(base: str, rest: str) -> JobId:
    """``4711_1-19`` and ``4711_[1-19]`` are the same tasks; ``4711_9`` is one."""
    inner = rest[1:] if rest.startswith("_") else ""
    if inner and not inner.startswith("[") and not inner.isdigit():
        return parse_job_id(f"{base}_[{inner}]")
    return parse_job_id(base + rest)


def _kind_of(words: str) -> ReplyKind:
    for pattern, kind in _KINDS:
        if pattern.search(words.strip()):
            return kind
    return ReplyKind.OTHER
