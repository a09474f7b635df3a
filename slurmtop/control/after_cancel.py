"""What a cancel of a job came to, for one look at the queue. Pure."""

from collections.abc import Sequence

from slurmtop.control.actions import Target
from slurmtop.control.changes import another_run
from slurmtop.control.outcome import JobOutcome, Result, Said, Seen
from slurmtop.control.rows import matching, name_of, waited
from slurmtop.model.job import Job, Phase
from slurmtop.model.text import visible
from slurmtop.model.units import plural


def judge_cancel(target: Target, said: Said, seen: Seen, *, seen_before: bool) -> JobOutcome:
    """The outcome of a cancel for one job after one look at the queue.

    ``seen_before`` is true when an earlier look of this action still showed the job.
    """
    name = name_of(target)
    rows = matching(target, seen.jobs)
    if not rows:
        if _left_its_array(target, seen):
            text = f"job {name}: cancelled: it no longer waits in its array"
            return JobOutcome(target, Result.DONE, text)
        return _gone(target, name, seen, seen_before)
    word = _word(rows)
    alive = [row for row in rows if not row.state.ended]
    again = any(another_run(target, row) for row in rows)
    if not alive:
        return _ended_again(target, name, rows, word) if again else _ended(target, name, rows, word)
    word = _word(alive)
    if said.denied is not None:
        return JobOutcome(target, Result.DENIED, f"job {name}: {said.denied}", word)
    if said.refused is not None:
        return JobOutcome(target, Result.REFUSED, f"job {name}: {said.refused}", word)
    ending = [row for row in alive if row.state.phase is Phase.ENDING]
    if len(ending) == len(alive):
        nodes = _nodes(ending)
        text = f"job {name}: cancel sent, still completing{nodes} (epilog or a stuck process)"
        return JobOutcome(target, Result.SENT, text, word, final=False)
    if said.unsure is not None:
        text = f"job {name}: not known whether Slurm took the cancel ({said.unsure}); it is {word}"
        return JobOutcome(target, Result.NOT_KNOWN, text, word, final=False)
    if again:
        text = f"job {name}: cancel sent, but it was requeued meanwhile: its next run is {word}"
        return JobOutcome(target, Result.SENT, text, word, final=False)
    text = f"job {name}: cancel sent, not final yet; it is still {word}"
    return JobOutcome(target, Result.SENT, text, word, final=False)


def _left_its_array(target: Target, seen: Seen) -> bool:
    """Waiting tasks that are taken out of an array leave no record; the others stay.

    Had they started instead, each would have a record of its own.
    """
    return waited(target) and any(job.id.base == target.base for job in seen.jobs)


def _gone(target: Target, name: str, seen: Seen, seen_before: bool) -> JobOutcome:
    if seen.failure is not None:
        text = f"job {name}: not known: {visible(seen.failure.sentence)}"
        return JobOutcome(target, Result.NOT_KNOWN, text, final=False)
    if seen_before:
        text = f"job {name}: over, and Slurm has let go of it; sacct -j {target.base} tells how"
        return JobOutcome(target, Result.OVER, text)
    text = (
        f"job {name}: no such job in the queue (any more);"
        f" sacct -j {target.base} tells whether it ended"
    )
    return JobOutcome(target, Result.NO_SUCH_JOB, text)


def _ended(target: Target, name: str, rows: Sequence[Job], word: str) -> JobOutcome:
    cancelled = sum(1 for row in rows if row.state.base == "CANCELLED")
    if cancelled == len(rows):
        return JobOutcome(target, Result.DONE, f"job {name}: cancelled", word)
    if cancelled:
        rest = len(rows) - cancelled
        text = f"job {name}: cancelled; {plural(rest, 'record')} of it had already ended"
        return JobOutcome(target, Result.DONE, text, word)
    text = f"job {name}: already over before the cancel reached it ({word})"
    return JobOutcome(target, Result.OVER, text, word)


def _ended_again(target: Target, name: str, rows: Sequence[Job], word: str) -> JobOutcome:
    since = "it was requeued meanwhile, and its next run"
    if all(row.state.base == "CANCELLED" for row in rows):
        text = f"job {name}: cancelled: {since} was cancelled, too"
        return JobOutcome(target, Result.DONE, text, word)
    return JobOutcome(target, Result.OVER, f"job {name}: over: {since} has ended ({word})", word)


def _word(rows: Sequence[Job]) -> str:
    words = dict.fromkeys(visible(row.state.word) for row in rows)
    return ", ".join(words)


def _nodes(rows: Sequence[Job]) -> str:
    counts = [row.node_count for row in rows]
    known = [count for count in counts if count]
    return f" on {plural(sum(known), 'node')}" if known and len(known) == len(counts) else ""
