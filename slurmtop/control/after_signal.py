"""What a signal came to, or the cancel of one step: by the job and its running steps. Pure.

That a signal arrived cannot be read back: Slurm's acceptance is all that is known, and what the
job and its steps do in the seconds after.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from slurmtop.control.actions import Details, Recipient, Target
from slurmtop.control.after_change import Verdict
from slurmtop.control.changes import another_run
from slurmtop.control.commands import SIGNAL_NUMBERS
from slurmtop.control.outcome import Result, Said, Seen, StepsSeen
from slurmtop.control.rows import steps_of
from slurmtop.model.job import Job, Phase
from slurmtop.model.text import visible
from slurmtop.parse.slurm.exit_codes import explain_job_exit

#: A signal that makes a job end shows within this time.
SETTLED_S = 3.0
_RAN = (Phase.RUNNING, Phase.SUSPENDED, Phase.ENDING)
_TO = {
    Recipient.STEPS: "to the steps",
    Recipient.BATCH: "to the batch shell",
    Recipient.EVERYTHING: "to the batch shell, its children and the steps",
}


@dataclass(frozen=True, slots=True)
class Steps:
    """The running steps right before the command and now; None where nobody asked."""

    before: StepsSeen | None = None
    now: StepsSeen | None = None


NOT_ASKED = Steps()


def judge_signal(
    details: Details,
    target: Target,
    rows: Sequence[Job],
    said: Said,
    seen: Seen,
    steps: Steps,
    since_s: float,
) -> Verdict:
    """What is known of a signal ``since_s`` seconds after it was sent."""
    sent = f"signalled: {details.signal} sent {_to(details, target)}"
    word = _word(rows)
    if said.denied is not None:
        return Verdict(Result.DENIED, said.denied, word)
    if said.refused is not None:
        return Verdict(Result.REFUSED, said.refused, word)
    ended = bool(rows) and all(row.state.ended for row in rows)
    ran = _there(target, steps.before)
    if any(another_run(target, row) for row in rows):
        return _in_next_run(details, target, rows, said, ran, since_s)
    killed_by_it = ended and _killed_by(details.signal, rows)
    # To a job that is over Slurm says nothing and exits 0 (24.11 and 26.05).
    over_before = ran is False and (ended or (not rows and seen.failure is None))
    if said.gone or said.over or (over_before and not killed_by_it):
        return _too_late(target, rows, seen, word)
    if not rows:
        if seen.failure is not None:
            text = f"not known what came of {details.signal}: {visible(seen.failure.sentence)}"
            return Verdict(Result.NOT_KNOWN, text, final=False)
        text = f"not known whether {details.signal} reached it: the queue no longer shows the job"
        return Verdict(Result.NOT_KNOWN, text)
    if said.unsure is not None:
        text = f"not known whether Slurm took the signal ({said.unsure}); it is {word}"
        return Verdict(Result.NOT_KNOWN, text, word, final=since_s >= SETTLED_S)
    nobody = _nobody(details, target, steps)
    if nobody is not None and not killed_by_it:
        text = f"{details.signal} accepted, but {nobody}: most likely nothing got it; it is {word}"
        return Verdict(Result.NOT_KNOWN, text, word, final=since_s >= SETTLED_S or ended)
    if ended and ran is None and not killed_by_it:
        text = f"not known whether {details.signal} reached it before it ended ({_end(rows)})"
        return Verdict(Result.NOT_KNOWN, text, word)
    if ended:
        text = f"{sent}; the job has ended since: {_end(rows)}"
        return Verdict(Result.DONE, text, word)
    phases = {row.state.phase for row in rows if not row.state.ended}
    final = since_s >= SETTLED_S
    if not phases & set(_RAN):
        return Verdict(Result.DONE, f"{sent}; the job is {word} now", word, final)
    after = "" if since_s < 1 else f" {int(since_s)} s later"
    if phases == {Phase.ENDING}:
        return Verdict(Result.DONE, f"{sent}; the job is ending ({word}){after}", word, final)
    runs = "still runs" if Phase.RUNNING in phases else f"is {word}"
    text = f"{sent}; {_steps_since(target, steps)}the job {runs}{after}"
    return Verdict(Result.DONE, text, word, final)


def _in_next_run(
    details: Details,
    target: Target,
    rows: Sequence[Job],
    said: Said,
    ran: bool | None,
    since_s: float,
) -> Verdict:
    """The job was requeued since: scancel tries for a while, so that either run may have it."""
    word = _word(rows)
    ended = all(row.state.ended for row in rows)
    heard = not (said.gone or said.over or said.unsure is not None)
    if ended:
        text = (
            f"the job was requeued meanwhile; its next run has ended ({_end(rows)}):"
            f" {details.signal} may have reached that one"
        )
        return Verdict(Result.NOT_KNOWN, text, word)
    if ran and heard:
        sent = f"signalled: {details.signal} sent {_to(details, target)}"
        text = f"{sent}; the job was requeued since, and its next run is {word}"
        return Verdict(Result.DONE, text, word, final=since_s >= SETTLED_S)
    text = (
        f"not known which run {details.signal} reached: the job was requeued meanwhile,"
        f" and its next run is {word}"
    )
    return Verdict(Result.NOT_KNOWN, text, word, final=since_s >= SETTLED_S)


def _killed_by(signal: str, rows: Sequence[Job]) -> bool:
    """Did it end by this very signal? A shell says 128 and its number."""
    number = SIGNAL_NUMBERS.get(signal)
    codes = [code for row in rows for code in (row.exit_code, row.derived_exit_code)]
    return number is not None and any(
        number in (code.signal, code.code - 128) for code in codes if code is not None
    )


def judge_step_cancel(
    target: Target, rows: Sequence[Job], said: Said, seen: Seen, steps: Steps, shown_before: bool
) -> Verdict:
    """What came of the cancel of one step; only that it is no longer listed proves it."""
    step = visible(target.step or "")
    word = _word(rows)
    if not rows:
        if seen.failure is not None:
            text = f"not known: {visible(seen.failure.sentence)}"
            return Verdict(Result.NOT_KNOWN, text, final=False)
        how = f"sacct -j {target.base} tells how"
        if shown_before:
            return Verdict(Result.OVER, f"the whole job is over, and Slurm let go of it; {how}")
        return Verdict(Result.NO_SUCH_JOB, f"no such job in the queue (any more); {how}")
    if any(another_run(target, row) for row in rows):
        text = (
            f"the job was requeued meanwhile, and its next run is {word}: not known whether"
            f" the cancel reached step {step} of that one"
        )
        return Verdict(Result.NOT_KNOWN, text, word)
    was = _there(target, steps.before)
    if all(row.state.ended for row in rows):
        text = f"step {step} is over: the whole job has ended ({_end(rows)})"
        return Verdict(Result.DONE if was and not said.gone else Result.OVER, text, word)
    there = _there(target, steps.now)
    if there:
        if said.denied is not None:
            return Verdict(Result.DENIED, said.denied, word)
        if said.refused is not None:
            return Verdict(Result.REFUSED, said.refused, word)
        if said.unsure is not None:
            text = f"not known whether Slurm took the cancel ({said.unsure}); step {step} runs"
            return Verdict(Result.NOT_KNOWN, text, word, final=False)
        text = f"cancel sent, step {step} has not ended yet"
        return Verdict(Result.SENT, text, word, final=False)
    if there is None:
        why = "" if steps.now is None or steps.now.failure is None else steps.now.failure.sentence
        text = f"not known whether step {step} has ended: {visible(why) or 'its steps are silent'}"
        return Verdict(Result.NOT_KNOWN, text, word, final=False)
    goes_on = f"the job goes on ({word})" if _runs(rows) else f"the job is {word}"
    if was is False or said.gone or said.over:
        text = f"step {step} was over before the cancel reached it; {goes_on}"
        return Verdict(Result.OVER, text, word)
    return Verdict(Result.DONE, f"step {step} cancelled; {goes_on}", word)


def _to(details: Details, target: Target) -> str:
    if target.step is not None:
        return f"to step {visible(target.step)}"
    return _TO.get(details.recipient, "")


def _too_late(target: Target, rows: Sequence[Job], seen: Seen, word: str | None) -> Verdict:
    if rows and all(row.state.ended for row in rows):
        text = f"no signal reached it: it had already ended ({_end(rows)})"
        return Verdict(Result.OVER, text, word)
    if rows and target.step is not None:
        step = visible(target.step)
        text = f"no signal reached it: step {step} had already ended; the job is {word}"
        return Verdict(Result.OVER, text, word)
    if rows:
        text = f"no signal reached it: Slurm found nothing of it that runs; it is {word}"
        return Verdict(Result.REFUSED, text, word)
    if seen.failure is not None:
        text = f"no signal reached it, Slurm did not know it; {visible(seen.failure.sentence)}"
        return Verdict(Result.NO_SUCH_JOB, text)
    text = f"no such job in the queue (any more); sacct -j {target.base} tells whether it ended"
    return Verdict(Result.NO_SUCH_JOB, text)


def _nobody(details: Details, target: Target, steps: Steps) -> str | None:
    """Why the signal had nobody to go to, where that is known."""
    if steps.before is None or steps.before.failure is not None:
        return None
    before = steps_of(target, steps.before.steps)
    if target.step is not None:
        return None if before else f"step {visible(target.step)} did not run when it was sent"
    if details.recipient is Recipient.STEPS and not any(step.by_srun for step in before):
        return "no step of srun ran when it was sent"
    return None


def _steps_since(target: Target, steps: Steps) -> str:
    """``step 0 has ended since; ``, or nothing where all that ran still runs."""
    if steps.now is None or steps.before is None:
        return ""
    if steps.now.failure is not None or steps.before.failure is not None:
        return "its steps are not known; "
    before = [step.id for step in steps_of(target, steps.before.steps)]
    now = {step.id for step in steps_of(target, steps.now.steps)}
    gone = list(dict.fromkeys(visible(id) for id in before if id not in now))
    if not gone:
        return ""
    named = ", ".join(gone[:3]) + (f" and {len(gone) - 3} more" if len(gone) > 3 else "")
    return f"step {named} has ended since; " if len(gone) == 1 else f"ended since: {named}; "


def _there(target: Target, steps: StepsSeen | None) -> bool | None:
    """Did the step run then? None where nobody could tell."""
    if steps is None:
        return None
    if steps_of(target, steps.steps):
        return True
    return None if steps.failure is not None else False


def _runs(rows: Sequence[Job]) -> bool:
    return any(row.state.phase in (Phase.RUNNING, Phase.SUSPENDED) for row in rows)


def _word(rows: Sequence[Job]) -> str | None:
    return ", ".join(dict.fromkeys(visible(row.state.word) for row in rows)) or None


def _end(rows: Sequence[Job]) -> str:
    """``FAILED, SIGUSR1`` …: the state and what its exit code means, of the first that says it."""
    row = next((row for row in rows if row.exit_code is not None), rows[0])
    short = explain_job_exit(row).short
    word = visible(row.state.word)
    return f"{word}, {short}" if short and short.lower() != word.lower() else word
