"""What became of an action, in lines: first what did not go as asked. Pure."""

from dataclasses import dataclass
from datetime import datetime

from slurmtop.control.actions import Action, Kind
from slurmtop.control.outcome import JobOutcome, Outcome, Result
from slurmtop.model.text import visible
from slurmtop.model.units import ago_text
from slurmtop.ui.present.action_words import running_text, title_text
from slurmtop.ui.present.spans import Line, cut_line, wrap

_ROLES = {
    Result.DONE: "good",
    Result.OVER: "good",
    Result.NO_SUCH_JOB: "warn",
    Result.DENIED: "bad",
    Result.REFUSED: "bad",
    Result.SENT: "wait",
    Result.NOT_SENT: "warn",
    Result.NOT_KNOWN: "bad",
    Result.PARTLY: "bad",
}
_WORST_FIRST = (
    Result.DENIED,
    Result.REFUSED,
    Result.NOT_KNOWN,
    Result.PARTLY,
    Result.NOT_SENT,
    Result.NO_SUCH_JOB,
    Result.SENT,
    Result.OVER,
    Result.DONE,
)
SHOWN_COMMANDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """An action on its way: exactly one of ``refusal``, ``failure`` and ``outcome`` ends it.

    ``refusal`` says why nothing was begun, ``failure`` what went wrong in slurmtop itself.
    """

    title: str
    action: Action | None = None
    started_at: datetime | None = None
    refusal: str | None = None
    failure: str | None = None
    outcome: Outcome | None = None

    @property
    def over(self) -> bool:
        return self.refusal is not None or self.failure is not None or self.outcome is not None


def begun(action: Action, now: datetime, *, dry_run: bool = False) -> Progress:
    """The action was confirmed and runs."""
    title = title_text(action, dry_run=dry_run)
    return Progress(title=title, action=action, started_at=now)


def progress_lines(progress: Progress, now: datetime, width: int) -> tuple[Line, ...]:
    """All of it, the worst first."""
    out: list[Line] = []
    if progress.refusal is not None:
        out.extend(_text(visible(progress.refusal), width, "warn"))
    elif progress.failure is not None:
        out.extend(_text(visible(progress.failure), width, "bad"))
    elif progress.outcome is not None:
        out.extend(_outcome(progress.outcome, width))
    else:
        out.extend(_running(progress, now, width))
    return tuple(cut_line(line, width) for line in out)


def unlogged_lines(action: Action, why: str, width: int) -> tuple[Line, ...]:
    """The question asked once more: what would be done without a trace in the log, and why."""
    out = _text("Nothing was done yet: this cannot be written to the log of actions.", width, "")
    out.extend(_text(visible(why), width, "bad"))
    out.extend(_commands(action, width))
    out.extend(_text("Do it all the same, without a line in the log?", width, "strong"))
    out.extend(_text("y = yes, n or esc = no", width, "strong"))
    return tuple(cut_line(line, width) for line in out)


def unsaved_lines(action: Action, why: str, width: int) -> tuple[Line, ...]:
    """As :func:`unlogged_lines`, where what is known of the job could not be saved."""
    out = _text("Nothing was done yet.", width, "")
    out.extend(_text(visible(why), width, "bad"))
    out.extend(_commands(action, width))
    out.extend(_text("Do it all the same? What is known is lost with the job.", width, "strong"))
    out.extend(_text("y = yes, n or esc = no", width, "strong"))
    return tuple(cut_line(line, width) for line in out)


def close_text(progress: Progress) -> str:
    """How to close it, and what that means."""
    return "esc closes" if progress.over else "esc closes this, it goes on"


def _text(text: str, width: int, role: str, indent: str = "") -> list[Line]:
    return [((piece, role),) for piece in wrap(text, width, first=indent, rest=indent + "  ")]


def _running(progress: Progress, now: datetime, width: int) -> list[Line]:
    if progress.action is None:
        return []
    since = (now - progress.started_at).total_seconds() if progress.started_at else 0.0
    text = f"{running_text(progress.action)} … for {ago_text(since)}"
    out = _text(text, width, "busy")
    if progress.action.saves:
        kept = ", ".join(visible(one.path) for one in progress.action.saves)
        out.extend(_text(f"what is known is saved first: {kept}", width, "dim", "  "))
    return [*out, *_commands(progress.action, width)]


def _commands(action: Action, width: int) -> list[Line]:
    texts = action.command_lines
    out: list[Line] = []
    for text in texts[:SHOWN_COMMANDS]:
        out.append(cut_line(((f"  $ {visible(text)}", "dim"),), width))
    if len(texts) > SHOWN_COMMANDS:
        out.append(((f"  … {len(texts) - SHOWN_COMMANDS} more", "dim"),))
    return out


def _outcome(outcome: Outcome, width: int) -> list[Line]:
    out: list[Line] = []
    if len(outcome.jobs) != 1 or outcome.refused is not None:
        role = "good" if outcome.ok else "bad" if outcome.refused else "warn"
        out.extend(_text(visible(outcome.sentence), width, role))
    if outcome.trouble:
        out.extend(_text(visible(outcome.trouble), width, "bad"))
    ordered = sorted(outcome.jobs, key=lambda job: _WORST_FIRST.index(job.result))
    for job in ordered:
        out.extend(_text(_job_text(job), width, _role(outcome.action.kind, job.result)))
    for path in outcome.saved:
        out.extend(_text(f"saved first: {visible(path)}", width, "dim", "  "))
    if outcome.dry_run:
        out.extend(_commands(outcome.action, width))
    elif outcome.begun_not is None:
        out.extend(_commands(outcome.action, width))
        out.append(((f"  read back after {ago_text(outcome.took_s)}", "dim"),))
    return out


def _role(kind: Kind, result: Result) -> str:
    # Only who wants an end is content with one that came by itself.
    return "warn" if result is Result.OVER and kind is not Kind.CANCEL else _ROLES[result]


def _job_text(job: JobOutcome) -> str:
    return visible(job.sentence)
