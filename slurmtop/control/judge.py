"""What became of each job of an action, judged from what Slurm shows afterwards. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from slurmtop.control.actions import Action, Kind, Recipient, Target
from slurmtop.control.after_cancel import judge_cancel
from slurmtop.control.after_change import Verdict, judge_change, nothing_left
from slurmtop.control.after_signal import NOT_ASKED, Steps, judge_signal, judge_step_cancel
from slurmtop.control.outcome import JobOutcome, Result, Said, Seen
from slurmtop.control.rows import matching, name_of, narrowed, pieces_of
from slurmtop.model.job import Job
from slurmtop.model.text import visible

SaidParts = Callable[[Target], list[tuple[Target, Said]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look back. ``since_s`` is how long ago the last command ended; ``shown_before`` is
    true when an earlier look of this action still showed the job."""

    seen: Seen
    steps: Steps = NOT_ASKED
    since_s: float = 0.0
    shown_before: bool = False


def judge(action: Action, target: Target, said: SaidParts, look: Look) -> tuple[JobOutcome, ...]:
    """The outcomes for one target after one look: one, or one for each group of its tasks."""
    if _cancels(action) and target.step is None:
        word = said(target)[0][1]
        return (judge_cancel(target, word, look.seen, seen_before=look.shown_before),)
    found: list[tuple[Target, Verdict]] = []
    for piece, rows in pieces_of(target, matching(target, look.seen.jobs)):
        for part, word in said(piece):
            found.append((part, _verdict(action, part, rows, word, look)))
    return tuple(_told(target, found))


def _cancels(action: Action) -> bool:
    """Is it judged by the end of the job or step? KILL to more than the batch shell is a cancel."""
    if action.kind is Kind.SIGNAL:
        details = action.details
        return details.signal == "KILL" and details.recipient is not Recipient.BATCH
    return action.kind is Kind.CANCEL


def _verdict(action: Action, part: Target, rows: Sequence[Job], said: Said, look: Look) -> Verdict:
    if not rows and action.kind not in (Kind.CANCEL, Kind.SIGNAL):
        return nothing_left(action.kind, part, said, look.seen, look.shown_before)
    if _cancels(action):
        return judge_step_cancel(part, rows, said, look.seen, look.steps, look.shown_before)
    if action.kind is Kind.SIGNAL:
        return judge_signal(action.details, part, rows, said, look.seen, look.steps, look.since_s)
    return _worst(judge_change(action.kind, action.details, part, row, said) for row in rows)


def _worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Of a het job all parts must have come so far."""
    return max(verdicts, key=lambda one: (not one.final, one.result is not Result.DONE))


def _told(target: Target, found: Sequence[tuple[Target, Verdict]]) -> list[JobOutcome]:
    """Tasks that fared the same are told together."""
    groups: dict[Verdict, list[Target]] = {}
    for part, verdict in found:
        groups.setdefault(verdict, []).append(part)
    out = []
    for verdict, parts in groups.items():
        whole = narrowed(target, [span for part in parts for span in part.tasks])
        text = f"job {name_of(whole)}: {verdict.text}"
        word = None if verdict.word is None else visible(verdict.word)
        out.append(JobOutcome(whole, verdict.result, text, word, verdict.final))
    return out
