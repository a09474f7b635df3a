"""What scancel and scontrol said, job by job. Only a refusal means something."""

from collections.abc import Sequence
from dataclasses import dataclass

from slurmtop.control.actions import Details, Kind, Target
from slurmtop.control.outcome import Said
from slurmtop.control.rows import common, id_ranges, narrowed, numbers_of, without
from slurmtop.model.ids import JobId
from slurmtop.model.ports import Completed
from slurmtop.model.text import visible
from slurmtop.model.units import clock_text
from slurmtop.parse.slurm.ids import parse_job_id
from slurmtop.parse.slurm.scancel import ScancelKind, parse_scancel
from slurmtop.parse.slurm.scontrol_replies import ReplyKind, parse_scontrol_replies
from slurmtop.triage.subject import clause

_UNHEARD = (
    *(ScancelKind.CONTROLLER_DOWN, ScancelKind.BUSY, ScancelKind.OTHER),
    *(ReplyKind.UNHEARD, ReplyKind.OTHER),
)


@dataclass(frozen=True, slots=True)
class Heard:
    """One thing that a call said about ``job``, or about the call where that is None."""

    job: JobId | None
    kind: ScancelKind | ReplyKind
    words: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What one call said; ``alone`` is true when it named one job only."""

    heard: tuple[Heard, ...]
    alone: bool


def read_reply(program: str, done: Completed, *, alone: bool) -> Reply:
    """Take the words of one call of scancel or scontrol apart. Never raises."""
    if program == "scancel":
        spoken = parse_scancel(done.rc, done.stderr)
        heard = [
            Heard(None if item.job is None else parse_job_id(item.job), item.kind, item.sentence)
            for item in spoken
        ]
    else:
        replies = parse_scontrol_replies(done.rc, done.stderr)
        heard = [Heard(item.job, item.kind, item.words) for item in replies]
    return Reply(tuple(heard), alone)


def said_parts(
    kind: Kind, details: Details, target: Target, replies: Sequence[Reply]
) -> list[tuple[Target, Said]]:
    """``target`` cut along what was said of its tasks, with what was said of each part.

    A word about a whole call counts for the only job that it named; that the controller may not
    have heard it, for every one.
    """
    numbers = numbers_of(target)
    left: Target | None = target
    out: list[tuple[Target, Said]] = []
    for item, alone in [(item, reply.alone) for reply in replies for item in reply.heard]:
        if left is None or item.job is None:
            continue
        # Of a het job Slurm may name a part by a number of its own.
        if item.job.base not in numbers and not (alone and target.parts):
            continue
        ranges = id_ranges(item.job)
        if not ranges or not left.tasks:
            out.append((left, _said(kind, details, left, item)))
            left = None
            continue
        mine = common(left.tasks, ranges)
        if mine:
            part = narrowed(left, mine)
            out.append((part, _said(kind, details, part, item)))
            rest = without(left.tasks, mine)
            left = narrowed(left, rest) if rest else None
    if left is not None:
        out.append((left, _of_the_calls(kind, details, left, replies)))
    return out


def _of_the_calls(kind: Kind, details: Details, target: Target, replies: Sequence[Reply]) -> Said:
    for reply in replies:
        for item in reply.heard:
            if item.job is None and (reply.alone or item.kind in _UNHEARD):
                return _said(kind, details, target, item)
    return Said()


def _said(kind: Kind, details: Details, target: Target, item: Heard) -> Said:
    if isinstance(item.kind, ScancelKind):
        return _by_scancel(kind, item.kind, item.words)
    return _by_scontrol(kind, details, target, item.kind, item.words)


def _by_scancel(kind: Kind, what: ScancelKind, sentence: str) -> Said:
    signal = kind is Kind.SIGNAL
    if what is ScancelKind.DENIED:
        own = "not your job; its owner or an operator can signal it"
        return Said(denied=f"denied: {own if signal else clause(sentence)}")
    if what is ScancelKind.BUSY and signal:
        return Said(refused="refused: cannot signal a job that has not started")
    if what is ScancelKind.NO_SCRIPT:
        return Said(refused="refused: no batch script in an interactive job")
    if what in (ScancelKind.HET_COMPONENT, ScancelKind.NEEDS_CRON, ScancelKind.BAD_SIGNAL):
        return Said(refused=f"refused: {clause(sentence)}")
    if what in _UNHEARD:
        return Said(unsure=clause(sentence))
    return Said(gone=what is ScancelKind.UNKNOWN_JOB, over=what is ScancelKind.ALREADY_OVER)


def _by_scontrol(kind: Kind, details: Details, target: Target, what: ReplyKind, words: str) -> Said:
    told = visible(clause(words))
    if what is ReplyKind.DENIED:
        return Said(denied=f"denied: {_why_denied(kind, details, target, words)}")
    if what in _REFUSALS:
        return Said(refused=f"refused: {_REFUSALS[what]}")
    if what is ReplyKind.BAD_VALUE:
        return Said(refused=f"refused: Slurm says: {told}")
    if what is ReplyKind.OTHER and told and not words.startswith("scontrol ended"):
        return Said(refused=f"refused: Slurm says: {told}")
    if what in _UNHEARD:
        return Said(unsure=told)
    return Said(gone=what is ReplyKind.UNKNOWN_JOB, over=what is ReplyKind.FINISHED)


_REFUSALS = {
    ReplyKind.DISABLED: (
        "the job was submitted with --no-requeue or the site forbids it (JobRequeue=0):"
        " resubmit instead (submit it again)"
    ),
    ReplyKind.BATCH_ONLY: "interactive jobs cannot be requeued, only batch jobs can",
    ReplyKind.BUSY: "Slurm is just changing it; look again and repeat it in a moment",
    ReplyKind.PENDING: "already pending: it is already waiting to run",
    ReplyKind.NOT_PENDING: "it has started meanwhile; this can be changed of a waiting job only",
    ReplyKind.HET_PART: "a het job is reached by its leader only, which is its first part",
}


def _why_denied(kind: Kind, details: Details, target: Target, words: str) -> str:
    asked = None if details.limit_minutes is None else details.limit_minutes * 60
    not_yours = "invalid user" in words.lower()
    if kind is Kind.LIMIT and not not_yours:
        if target.limit_s is None:
            return "not your job, or a longer limit than before, which only an operator can set"
        raises = asked is not None and asked > target.limit_s
        if raises:
            return (
                f"its limit is {clock_text(target.limit_s)}, and only an operator can raise it;"
                " its owner can lower it"
            )
    if kind is Kind.RELEASE and not not_yours:
        return "held by an administrator, only they can release it"
    return "not your job"
