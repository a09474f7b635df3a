"""What became of the jobs of a command line, as lines of text and as JSON. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from slurmtop import __version__
from slurmtop.cli.errors import CANNOT_STATUS, FINE
from slurmtop.cli.named import Absent
from slurmtop.control.actions import Action, Kind
from slurmtop.control.outcome import Outcome, Result, done_word
from slurmtop.model.script import Reaction
from slurmtop.model.text import visible

SCHEMA = "slurmtop.action-outcome/1"
#: The words for ``outcome`` beside those of :class:`Result`.
WOULD, NOT_CONFIRMED = "dry_run", "not_confirmed"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLine:
    """One job: ``outcome`` is a word for scripts, ``sentence`` says it to a person."""

    id: str
    outcome: str
    sentence: str
    state: str | None = None
    ok: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All of it. ``refused`` is set where something was not begun at all."""

    kind: Kind
    cluster: str = ""
    dry_run: bool = False
    started_at: datetime
    took_s: float = 0.0
    commands: tuple[tuple[str, ...], ...] = ()
    hosts: tuple[str | None, ...] = ()
    """Where each of ``commands`` runs; None: here."""
    command_lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    reactions: tuple[Reaction, ...] = ()
    jobs: tuple[JobLine, ...] = ()
    saved: tuple[str, ...] = ()
    """Where what was known was saved first."""
    refused: str | None = None
    log_trouble: str | None = None

    @property
    def ok(self) -> bool:
        """Was it done to every job that was named (or would it be, in a dry run)?"""
        return self.refused is None and bool(self.jobs) and all(job.ok for job in self.jobs)

    @property
    def status(self) -> int:
        return FINE if self.ok else CANNOT_STATUS


def job_lines(outcome: Outcome) -> tuple[JobLine, ...]:
    """The jobs of one action that was begun, or would have been."""
    if outcome.dry_run:
        return tuple(_would(outcome.action))
    good = {Result.DONE, Result.OVER} if outcome.action.kind is Kind.CANCEL else {Result.DONE}
    return tuple(
        JobLine(
            id=_id(job.target.ids, job.target.label),
            outcome=job.result.name.lower(),
            sentence=visible(job.sentence),
            state=job.state_word,
            ok=job.result in good,
        )
        for job in outcome.jobs
    )


def _would(action: Action) -> Iterable[JobLine]:
    for target in action.targets:
        id = _id(target.ids, target.label)
        text = f"job {visible(id)}: would be {done_word(action.kind)}; dry run, nothing was done"
        yield JobLine(id=id, outcome=WOULD, sentence=text, ok=True)


def _id(ids: tuple[str, ...], label: str) -> str:
    """As a command names it: ``4711_[3-5]`` tells more than ``4711_[*]``."""
    return ids[0] if len(ids) == 1 else label


def not_confirmed(action: Action) -> tuple[JobLine, ...]:
    """The jobs of an action that the person did not want after all."""
    return _left(action, "not confirmed")


def not_saved(action: Action) -> tuple[JobLine, ...]:
    """The jobs of an action that was wanted, but not without saving first what is known."""
    return _left(action, "what is known of it could not be saved first")


def _left(action: Action, why: str) -> tuple[JobLine, ...]:
    lines = []
    for target in action.targets:
        id = _id(target.ids, target.label)
        text = f"job {visible(id)}: {why}, nothing was done"
        lines.append(JobLine(id=id, outcome=NOT_CONFIRMED, sentence=text))
    return tuple(lines)


def absent_line(absent: Absent) -> JobLine:
    """An id for which there was nothing to act on."""
    result = Result.REFUSED if absent.known else Result.NO_SUCH_JOB
    return JobLine(id=absent.text, outcome=result.name.lower(), sentence=absent.sentence)


def report_lines(report: Report) -> list[str]:
    """For a person: in a dry run the commands, then a line a job."""
    lines = [f"would run: {visible(text)}" for text in report.command_lines if report.dry_run]
    lines += [f"saved first: {visible(path)}" for path in report.saved]
    return lines + [job.sentence for job in report.jobs]


def report_dict(report: Report) -> dict[str, Any]:
    """For ``--json``: null for what is not known, times as ISO 8601 with offset."""
    return {
        "schema": SCHEMA,
        "slurmtop": __version__,
        "kind": report.kind.name.lower(),
        "cluster": report.cluster or None,
        "dry_run": report.dry_run,
        "ok": report.ok,
        "started_at": report.started_at.isoformat(),
        "took_s": round(report.took_s, 3),
        "commands": [list(argv) for argv in report.commands],
        "hosts": list(report.hosts),
        "jobs": [
            {
                "id": job.id,
                "outcome": job.outcome,
                "ok": job.ok,
                "state": job.state,
                "sentence": job.sentence,
            }
            for job in report.jobs
        ],
        "warnings": list(report.warnings),
        "reactions": [
            {
                "who": visible(one.who),
                "fate": one.fate.name.lower(),
                "why": visible(one.why),
                "line": one.line,
                "ends_job": one.ends_job,
            }
            for one in report.reactions
        ],
        "refused": report.refused,
        "log_trouble": report.log_trouble,
        "saved": list(report.saved),
    }
