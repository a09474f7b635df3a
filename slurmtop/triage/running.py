"""A job that holds nodes: does it move, as far as Slurm and its log can tell?

Where a log tells steps, a step that moves is the sign of life, and no other line is.

Silence is never called a hang here. One look at a log cannot tell a hang from a compile, a
checkpoint or buffered output, so a quiet job is unknown, and what would tell is named.
"""

import shlex
from dataclasses import dataclass
from datetime import datetime

from slurmtop.model.facts import LogFacts, LogLine, LogStatus, Progress
from slurmtop.model.job import LimitKind
from slurmtop.model.text import visible
from slurmtop.model.units import ago_text, count_text, plural
from slurmtop.model.verdict import Confidence, Evidence, Missing, NextStep, State, Verdict
from slurmtop.triage.catalogue import family_of
from slurmtop.triage.log_steps import last_progress, step_behind, written_at
from slurmtop.triage.subject import (
    CLOCKS_APART,
    Subject,
    first_error,
    got_over,
    log_evidence,
    read_log_step,
    read_logs,
    slurm_evidence,
)

#: A log without a new byte for longer than this is called quiet; nothing more follows from it.
QUIET_AFTER_S = 600.0
#: A job may stay COMPLETING for this long before that is worth a word.
LONG_COMPLETING_S = 300.0
#: Of two files: one that was written to this much later than the other holds the newer lines.
_LATER = CLOCKS_APART


@dataclass(frozen=True, slots=True)
class _Error:
    """The error line that counts. ``late``: it stands after the newest step."""

    log: LogFacts
    line: LogLine
    late: bool


def explain_running(subject: Subject) -> Verdict:
    """Step, age of the last log line and time left; or what is missing to say so."""
    facts = subject.facts
    logs = read_logs(subject)
    behind = step_behind(logs)
    written = logs[0].mtime if behind is not None else written_at(logs)
    quiet_s = _age_s(subject, written)
    moving = behind is None and quiet_s is not None and quiet_s < QUIET_AFTER_S
    progress = _progress(logs)
    found = _error(logs, progress)
    error = None if got_over(subject) else found
    # Steps are the sign of life; an error that is newer than all of them takes it back.
    healthy = moving and (error is None or (progress is not None and not error.late))
    return Verdict(
        job=subject.title,
        cluster=facts.cluster,
        state=State.HEALTHY if healthy else State.UNKNOWN,
        family=family_of("healthy") if healthy else None,
        cls="healthy" if healthy else None,
        confidence=Confidence.MEDIUM if healthy and progress is not None else Confidence.LOW,
        summary=_summary(subject, progress, quiet_s, moving, error, behind),
        since=None if progress is None and error is not None else last_progress(logs),
        evidence=_evidence(subject, logs, progress, error, healthy),
        against=_against(subject, found, healthy),
        missing=(*facts.missing, *(() if healthy else _would_tell(subject))),
        next=_next(subject, logs, None if healthy else error),
        made_at=facts.now,
    )


def _age_s(subject: Subject, at: datetime | None) -> float | None:
    return None if at is None else max(0.0, (subject.facts.now - at).total_seconds())


def _progress(logs: tuple[LogFacts, ...]) -> tuple[LogFacts, Progress] | None:
    return next(((log, log.progress) for log in logs if log.progress is not None), None)


def _error(logs: tuple[LogFacts, ...], progress: tuple[LogFacts, Progress] | None) -> _Error | None:
    """One that is newer than the newest step before any other."""
    if progress is not None:
        steps, found = progress
        for line in (steps.late_error, steps.first_error):
            if line is not None and line.offset > found.line.offset:
                return _Error(steps, line, late=True)
        for log in logs:
            if log.first_error is not None and _written_later(log, steps):
                return _Error(log, log.first_error, late=True)
    first = first_error(logs)
    return None if first is None else _Error(*first, late=False)


def _written_later(log: LogFacts, than: LogFacts) -> bool:
    if log.mtime is None or than.mtime is None:
        return False
    return log.mtime - than.mtime > _LATER


def _summary(
    subject: Subject,
    found: tuple[LogFacts, Progress] | None,
    quiet_s: float | None,
    moving: bool,
    error: _Error | None,
    behind: LogFacts | None,
) -> str:
    step = _step_text(found[1]) if found is not None else ""
    parts: list[str] = []
    if quiet_s is None:
        parts.append(_no_log_text(subject))
    elif behind is not None and quiet_s < QUIET_AFTER_S:
        parts.append(_behind_text(behind, step, quiet_s))
    elif moving and step:
        parts.append(f"{step}, log written {ago_text(quiet_s)} ago")
    elif moving:
        parts.append(f"log written {ago_text(quiet_s)} ago, no step seen")
    else:
        parts.append(f"log quiet for {ago_text(quiet_s)}: that alone is not a hang")
        if step:
            parts.append(f"last {step}")
    if error is not None:
        older = ", perhaps of an earlier attempt" if subject.restarts else ""
        where = "newer than its last step" if error.late else "in its log"
        parts.insert(0 if error.late or not step else 1, f"an error line {where}{older}")
    if not subject.facts.controller_answered:
        parts.append("the controller is silent, it last said RUNNING")
    ran, left = subject.ran_s(), _left_text(subject)
    times = [
        f"running {ago_text(ran)}" if ran is not None else "running",
        *([left] if left else []),
    ]
    parts.append(", ".join(times))
    return "; ".join(parts)


def _behind_text(log: LogFacts, step: str, quiet_s: float) -> str:
    lines = f"its last {plural(log.left_behind or 0, 'line')}"
    tell = "tells" if log.left_behind == 1 else "tell"
    last = f"{step} stands: " if step else ""
    return f"{last}{lines} {tell} no new step, log written {ago_text(quiet_s)} ago"


def _step_text(progress: Progress) -> str:
    total = f" of {count_text(progress.total)}" if progress.total is not None else ""
    return f"step {count_text(progress.step)}{total}"


def _no_log_text(subject: Subject) -> str:
    logs = subject.facts.logs
    read = [log for log in logs if log.status is LogStatus.READ]
    if any(log.slurm_line is not None and log.slurm_line == log.last_line for log in read):
        return "the last word in its log is Slurm's"
    if read:
        return "its log has nothing of this run yet"
    if any(log.status is LogStatus.ABSENT for log in logs):
        return "no log yet, so nobody can see whether it moves"
    blocked = next((log for log in logs if log.status is not LogStatus.ABSENT), None)
    if blocked is not None:
        why = f" ({visible(blocked.why)})" if blocked.why else ""
        return f"its log cannot be read{why}"
    return "where its log is, is not known"


def _left_text(subject: Subject) -> str:
    job = subject.job
    if job is not None and job.limit.kind is LimitKind.UNLIMITED:
        return ""
    end = job.end if job is not None else None
    left = (end - subject.facts.now).total_seconds() if end is not None else None
    if left is None and subject.limit_s is not None and subject.ran_s() is not None:
        left = subject.limit_s - (subject.ran_s() or 0.0)
    if left is None:
        return ""
    return f"{ago_text(left)} left" if left > 0 else "past its time limit"


def _evidence(
    subject: Subject,
    logs: tuple[LogFacts, ...],
    progress: tuple[LogFacts, Progress] | None,
    error: _Error | None,
    healthy: bool,
) -> tuple[Evidence, ...]:
    out: list[Evidence] = []
    if error is not None and not healthy:
        says = "an error line in its log"
        if error.late:
            says = "an error line that is newer than the newest step"
        out.append(log_evidence(error.log, error.line, _attempt_note(subject, says)))
    if progress is not None:
        log, found = progress
        out.append(log_evidence(log, found.line, "the newest step in the log"))
        if log.left_behind is not None and log.last_line is not None:
            out.append(log_evidence(log, log.last_line, "the last line, which tells no step"))
    elif logs and logs[0].last_line is not None:
        out.append(log_evidence(logs[0], logs[0].last_line, "the last line of the log"))
    told = slurm_evidence(
        subject, "Slurm counts it as running", ("JobState", "RunTime", "TimeLimit", "NodeList")
    )
    if told is not None:
        out.append(told)
    return tuple(out)


def _against(subject: Subject, error: _Error | None, healthy: bool) -> tuple[Evidence, ...]:
    if not healthy or error is None:
        return ()
    says = _attempt_note(subject, "there is an error line in its log")
    return (log_evidence(error.log, error.line, says),)


def _attempt_note(subject: Subject, says: str) -> str:
    if not subject.restarts:
        return says
    times = plural(subject.restarts, "restart")
    return f"{says}; after {times} it may be from an earlier attempt"


def _would_tell(subject: Subject) -> tuple[Missing, ...]:
    host, owner = subject.one_host, subject.owner
    command = None
    if host is not None and owner is not None and owner.isprintable():
        command = f"ssh {host} ps -u {shlex.quote(owner)} -o pid,stat,time,wchan:20,args"
    return (
        Missing(
            "process",
            "whether its processes still work was not looked at: asked twice, growing CPU time"
            " means that it lives",
            command,
        ),
    )


def _next(
    subject: Subject, logs: tuple[LogFacts, ...], error: _Error | None
) -> tuple[NextStep, ...]:
    """``error`` is the one that the verdict rests on; None where there is no such."""
    steps: list[NextStep] = []
    if error is not None:
        step = read_log_step(error.log, error.line)
    else:
        step = read_log_step(logs[0], None) if logs else None
    if step is not None:
        steps.append(step)
    why = "a step that has moved between two looks is progress"
    steps.append(NextStep("look again in a minute", subject.why(), "read", why))
    steps.append(NextStep("see all that Slurm knows", subject.show_job(), "read", ""))
    return tuple(steps)


def explain_completing(subject: Subject) -> Verdict:
    """Its processes are being ended; whether it is over or queued again is not decided yet."""
    facts, job = subject.facts, subject.job
    assert job is not None
    since = (facts.now - job.end).total_seconds() if job.end is not None else None
    summary = "ending: its nodes are being cleaned up; the result is not known yet"
    if job.state.word == "STAGE_OUT":
        summary = "ending: its data is being copied out; the result is not known yet"
    elif job.state.word == "SIGNALING":
        summary = "a signal is on its way to it; whether it goes on is not known yet"
    elif since is not None and since > LONG_COMPLETING_S:
        summary = f"ending for {ago_text(since)}: a long epilog, or a process nothing can kill"
    evidence = slurm_evidence(subject, "it still holds its nodes")
    steps = [NextStep("look again", subject.why(), "read", "the result comes with the next state")]
    if job.nodes and job.nodes.isprintable():
        nodes = shlex.quote(job.nodes)
        command = subject.command("sinfo", f"-N -l -n {nodes}")
        steps.append(NextStep("see its nodes", command, "read", ""))
    return Verdict(
        job=subject.title,
        cluster=facts.cluster,
        state=State.UNKNOWN,
        confidence=Confidence.HIGH,
        summary=summary,
        evidence=(evidence,) if evidence is not None else (),
        missing=facts.missing,
        next=tuple(steps),
        made_at=facts.now,
    )


def explain_suspended(subject: Subject) -> Verdict:
    """Stopped on purpose: it does no work until somebody lets it go on."""
    facts, job = subject.facts, subject.job
    assert job is not None
    stopped = "STOPPED" in job.state.flags
    number = subject.id
    if stopped:
        summary = "stopped by a signal (SIGSTOP): it keeps its nodes and does no work"
        go_on = subject.command("scancel", f"--signal=CONT {number}")
        step = subject.write("let it go on", go_on, "it was stopped with SIGSTOP")
    else:
        summary = "suspended: Slurm stopped its processes; others may use its nodes"
        go_on = subject.command("scontrol", f"resume {number}")
        step = NextStep(
            "resume it (most sites: an operator)", go_on, "write", "it goes on where it was"
        )
    evidence = slurm_evidence(subject, "it was stopped on purpose")
    return Verdict(
        job=subject.title,
        cluster=facts.cluster,
        state=State.IDLE,
        confidence=Confidence.HIGH,
        summary=summary,
        evidence=(evidence,) if evidence is not None else (),
        missing=facts.missing,
        next=(NextStep("see who and when", subject.show_job(), "read", ""), step),
        made_at=facts.now,
    )
