"""The look right before a command: is each job still the one that was confirmed? Pure."""

from collections.abc import Sequence

from slurmtop.control.actions import Action, Kind, Target
from slurmtop.control.after_change import Verdict
from slurmtop.control.changes import REQUEUES, Change, ChangeKind, change_of
from slurmtop.control.outcome import JobOutcome, Result, Seen
from slurmtop.control.read_back import SILENCE
from slurmtop.control.rows import matching, name_of, narrowed, pieces_of, waited
from slurmtop.model.job import Job
from slurmtop.model.text import visible
from slurmtop.triage.subject import clause

NOT_CONFIRMED = Verdict(Result.NOT_SENT, "not sent, it is not the job you confirmed")


def still_confirmed(
    action: Action, target: Target, seen: Seen, same: bool
) -> tuple[Target | None, tuple[JobOutcome, ...]]:
    """What of ``target`` is to be sent (None: nothing), and what became of the rest of it.

    ``same`` is what the caller knows of it. Where the controller is silent, that has to do; a
    look that failed in any other way lets nothing through.
    """
    rows = matching(target, seen.jobs)
    # A list of waiting tasks that cannot be read would take those that have a record too.
    rows.sort(key=lambda row: row.id.task is None)
    kept: list[Target] = []
    out: dict[Verdict, list[Target]] = {}
    for piece, records in pieces_of(target, rows):
        verdict = _against(action.kind, piece, records, seen)
        if verdict is None and not same:
            verdict = NOT_CONFIRMED
        if verdict is None:
            kept.append(piece)
        else:
            out.setdefault(verdict, []).append(piece)
    told = []
    for verdict, pieces in out.items():
        part = _joined(target, pieces)
        text = f"job {name_of(part)}: {verdict.text}"
        told.append(JobOutcome(part, verdict.result, text, verdict.word))
    return (_joined(target, kept) if kept else None), tuple(told)


def _joined(target: Target, pieces: Sequence[Target]) -> Target:
    if not target.tasks:
        return target
    return narrowed(target, [span for piece in pieces for span in piece.tasks])


def _against(kind: Kind, piece: Target, rows: Sequence[Job], seen: Seen) -> Verdict | None:
    """Why nothing is sent to ``piece``; None where nothing speaks against it."""
    if not rows:
        return _missing(kind, piece, seen)
    alive = [row for row in rows if not row.state.ended]
    # A het job goes on as long as one of its parts does.
    telling = next((row for row in alive if row.key == piece.key), (alive or rows)[0])
    change = change_of(kind, piece, telling)
    return None if change is None or not change.lost else _lost(kind, change, telling)


def _missing(kind: Kind, piece: Target, seen: Seen) -> Verdict | None:
    asking = f"sacct -j {piece.base} tells whether it ended"
    if seen.failure is not None:
        if seen.failure.trouble in SILENCE:
            return None
        why = visible(clause(seen.failure.sentence))
        text = (
            "not sent: slurmtop could not see whether it is still the job you confirmed"
            f" ({why}); try again"
        )
        return Verdict(Result.NOT_SENT, text)
    if (
        kind is Kind.CANCEL
        and waited(piece)
        and any(job.id.base == piece.base for job in seen.jobs)
    ):
        # Waiting tasks that are taken out of an array leave no record; the others stay.
        text = f"already over before the cancel was sent: it no longer waits in its array; {asking}"
        return Verdict(Result.OVER, text)
    if kind in REQUEUES:
        asking = f"too old: resubmit, that is, submit it again ({asking})"
    return Verdict(Result.NO_SUCH_JOB, f"not sent: no such job in the queue (any more); {asking}")


def _lost(kind: Kind, change: Change, job: Job) -> Verdict:
    word = visible(job.state.word)
    if change.kind is ChangeKind.ENDED and kind not in REQUEUES:
        what = "cancel" if kind is Kind.CANCEL else "command"
        text = f"already over before the {what} was sent ({word})"
        return Verdict(Result.OVER, text, word)
    return Verdict(Result.NOT_SENT, f"not sent: {_why(change, job, word)}", word)


def _why(change: Change, job: Job, word: str) -> str:
    match change.kind:
        case ChangeKind.ENDED if job.state.base == "COMPLETED":
            return "it completed meanwhile, and a requeue would run it again"
        case ChangeKind.ENDED:
            return f"it ended meanwhile ({word}); look at it, and requeue it again if that is meant"
        case ChangeKind.ENDING:
            return f"it is ending by itself ({word}): ask again when it is over"
        case ChangeKind.ANOTHER_RUN:
            return f"another run now: it was requeued meanwhile ({word})"
        case ChangeKind.STARTED:
            where = f" on {visible(job.nodes)}" if job.nodes else ""
            return f"it has started meanwhile{where}"
        case ChangeKind.STOPPED_RUNNING:
            return "it waits in the queue again"
        case ChangeKind.REVIVED:
            return f"it is no longer over ({word})"
        case ChangeKind.LEFT:
            return "it has left the queue"
