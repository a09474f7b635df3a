"""What a requeue, hold, release or update came to, for one record of the queue. Pure."""

from typing import NamedTuple

from slurmtop.control.actions import Details, Kind, Target
from slurmtop.control.changes import another_run
from slurmtop.control.commands import excluded_after
from slurmtop.control.outcome import Result, Said, Seen
from slurmtop.model.job import Job, LimitKind, Phase
from slurmtop.model.text import visible
from slurmtop.model.units import clock_text
from slurmtop.parse.slurm.hostlist import HostlistError, expand_hosts

_REQUEUES = (Kind.REQUEUE, Kind.REQUEUE_HOLD)
_HELD = frozenset({"jobhelduser", "jobheldadmin", "job requeued in held state"})
_ASKED = {
    Kind.REQUEUE: "requeue",
    Kind.REQUEUE_HOLD: "requeue",
    Kind.HOLD: "hold",
    Kind.RELEASE: "release",
    Kind.LIMIT: "change of the time limit",
    Kind.EXCLUDE: "exclusion of nodes",
}


class Verdict(NamedTuple):
    """A :class:`~slurmtop.control.outcome.JobOutcome` without the name of the job."""

    result: Result
    text: str
    word: str | None = None
    final: bool = True


def judge_change(kind: Kind, details: Details, target: Target, row: Job, said: Said) -> Verdict:
    """What ``row`` shows of the change, and where it shows none, what Slurm said of it."""
    word = visible(row.state.word)
    if said.denied is not None:
        return Verdict(Result.DENIED, said.denied, word)
    if said.refused is not None:
        return Verdict(Result.REFUSED, said.refused, word)
    if kind in _REQUEUES and said.gone:
        text = "refused: Slurm no longer knows it, it is too old: resubmit (submit it again)"
        return Verdict(Result.REFUSED, text, word)
    if not said.over:
        done = _done(kind, details, target, row, word)
        if done is not None:
            since = kind not in _REQUEUES and another_run(target, row)
            more = "; it was requeued meanwhile, this is its next run" if since else ""
            return done._replace(text=f"{done.text}{more}")
    if kind not in _REQUEUES and (said.over or row.state.ended):
        return Verdict(Result.OVER, f"already finished, it is over ({word})", word)
    asked = _ASKED[kind]
    if said.unsure is not None:
        text = f"not known whether Slurm took the {asked} ({said.unsure}); it is {word}"
        return Verdict(Result.NOT_KNOWN, text, word, final=False)
    text = f"{asked} sent, but the queue does not show it yet; it is {word}"
    return Verdict(Result.SENT, text, word, final=False)


def nothing_left(kind: Kind, target: Target, said: Said, seen: Seen, shown_before: bool) -> Verdict:
    """There is no record of it, or none of these tasks of it."""
    if seen.failure is not None:
        text = f"not known: {visible(seen.failure.sentence)}"
        return Verdict(Result.NOT_KNOWN, text, final=False)
    if said.denied is not None:
        return Verdict(Result.DENIED, said.denied)
    if said.refused is not None:
        return Verdict(Result.REFUSED, said.refused)
    if said.over:
        return Verdict(Result.OVER, "already finished, it is over")
    asking = f"sacct -j {target.base} tells whether it ended"
    if kind in _REQUEUES:
        asking = f"too old: resubmit, that is, submit it again ({asking})"
    if said.gone and target.tasks:
        return Verdict(Result.NO_SUCH_JOB, f"no such task; {asking}")
    if shown_before:
        text = f"over, and Slurm has let go of it; sacct -j {target.base} tells how"
        return Verdict(Result.OVER, text)
    return Verdict(Result.NO_SUCH_JOB, f"no such job in the queue (any more); {asking}")


def _done(kind: Kind, details: Details, target: Target, row: Job, word: str) -> Verdict | None:
    """The verdict where the record shows what was wished, else None."""
    if kind in _REQUEUES:
        return _requeued(kind, target, row, word)
    if kind is Kind.HOLD:
        return _held(row, word)
    if kind is Kind.RELEASE:
        return _released(row, word)
    if kind is Kind.LIMIT:
        return _limited(details, target, row, word)
    return _excluded(details, target, row, word)


def _requeued(kind: Kind, target: Target, row: Job, word: str) -> Verdict | None:
    phase = row.state.phase
    again = _again(target, row)
    if phase is Phase.ENDING:
        taken = "accepted" if again else "sent"
        text = f"requeue {taken}, still cleaning up ({word}); then it waits again"
        return Verdict(Result.SENT, text, word, final=False)
    if not again:
        return None
    if kind is Kind.REQUEUE_HOLD:
        if is_held(row):
            text = "requeued and held: it waits until it is released"
            return Verdict(Result.DONE, text, word)
        text = f"requeued, but not held so far; it is {word}{_reason(row)}"
        return Verdict(Result.SENT, text, word, final=False)
    if phase is Phase.PENDING and is_held(row):
        text = f"requeued, but held: release it to let it start{_reason(row)}"
        return Verdict(Result.DONE, text, word)
    if phase is Phase.PENDING:
        usual = ": about 2 minutes are normal" if row.reason == "BeginTime" else ""
        why = f" ({visible(row.reason)}{usual})" if row.reason else ""
        return Verdict(Result.DONE, f"requeued: it waits again{why}", word)
    if row.state.ended:
        return Verdict(Result.DONE, f"requeued, and that run is over, too ({word})", word)
    return Verdict(Result.DONE, f"requeued, and it already runs again ({word})", word)


def _again(target: Target, row: Job) -> bool:
    """Was it put back in the queue since the action was planned?"""
    counts = (target.restarts, row.restarts)
    if counts[0] is not None and counts[1] is not None and counts[1] > counts[0]:
        return True
    if target.submit is not None and row.submit is not None and row.submit > target.submit:
        return True
    # What ran and waits now was put back, whoever asked for it.
    ran = target.started_at is not None and row.state.phase is Phase.PENDING
    return ran or bool({"REQUEUED", "REQUEUE_HOLD"} & set(row.state.flags))


def is_held(row: Job) -> bool:
    """Does a hold keep it from starting? Of a running job: from starting again."""
    if row.priority is not None:
        return row.priority == 0
    return (row.reason or "").replace("_", " ").lower() in _HELD


def _held(row: Job, word: str) -> Verdict | None:
    if row.state.ended or not is_held(row):
        return None
    if row.state.phase is Phase.PENDING:
        return Verdict(Result.DONE, f"held{_reason(row)}", word)
    text = f"held, but it still runs ({word}): a hold only keeps it from starting again"
    return Verdict(Result.DONE, text, word)


def _released(row: Job, word: str) -> Verdict | None:
    if row.state.ended or is_held(row):
        return None
    if row.state.phase is Phase.PENDING:
        return Verdict(Result.DONE, f"released: it waits{_reason(row)}", word)
    return Verdict(Result.DONE, f"released; it is {word}", word)


def _limited(details: Details, target: Target, row: Job, word: str) -> Verdict | None:
    wanted = None if details.limit_minutes is None else details.limit_minutes * 60
    if row.limit.kind is not LimitKind.SECONDS or row.limit.seconds != wanted:
        return None
    before = "" if target.limit_s is None else f" (was {clock_text(target.limit_s)})"
    since = f"; it has ended since ({word})" if row.state.ended else ""
    text = f"time limit set: it is {clock_text(row.limit.seconds or 0)} now{before}{since}"
    return Verdict(Result.DONE, text, word)


def _excluded(details: Details, target: Target, row: Job, word: str) -> Verdict | None:
    try:
        wanted = set(expand_hosts(excluded_after(target, details.exclude)))
        have = set(expand_hosts(row.excluded_nodes or ""))
    except (HostlistError, ValueError):
        return None
    if not wanted or not wanted <= have:
        return None
    text = f"nodes excluded: it will not start on {visible(row.excluded_nodes or '')}"
    return Verdict(Result.DONE, text, word)


def _reason(row: Job) -> str:
    return f" ({visible(row.reason)})" if row.reason else ""
