"""How a job ended, who ended it, and the first real error of its log."""

import re
from dataclasses import dataclass
from datetime import datetime

from slurmtop.model.facts import LogFacts, LogLine
from slurmtop.model.job import ExitCode, JobState
from slurmtop.model.text import visible
from slurmtop.model.units import bytes_text, clock_text
from slurmtop.model.verdict import (
    Confidence,
    Culprit,
    EndedBy,
    Evidence,
    NextStep,
    State,
    Verdict,
)
from slurmtop.triage.after import steps_after
from slurmtop.triage.catalogue import family_of
from slurmtop.triage.subject import (
    Subject,
    clause,
    first_error,
    got_over,
    log_evidence,
    ran_text,
    read_log_step,
    read_logs,
    sacct_evidence,
    slurm_evidence,
)

_EXCEPTION = re.compile(
    r"(?:^|[\s:\]>])(?:[A-Za-z_][A-Za-z0-9_]*\.)*[A-Z][A-Za-z0-9_]*(?:Error|Exception)(?::|\s*$)"
)
#: Exceptions that only carry the news of something else, or have a class of their own.
_NOT_ORDINARY = re.compile(
    r"OutOfMemory|out of memory|MemoryError|CUDA|NCCL|ncclI|ncclS|DistBackend|DistStore|DistNetwork"
    r"|Rendezvous|ChildFailed|BrokenPipe|ConnectionReset|ConnectionRefused|ConnectionClosed"
    r"|Connection closed|timed out|Timeout|KeyboardInterrupt|SignalException|device-side assert"
    r"|No space left|shared memory|Too many open files|Address already in use",
    re.IGNORECASE,
)
_NODE_FAILURE = re.compile(
    r"srun: error: Node failure on ([A-Za-z0-9][A-Za-z0-9_.-]{0,252})(?:\s|$)"
)
_NAMES = ("JobState", "Reason", "ExitCode", "EndTime", "BatchHost")


@dataclass(frozen=True, slots=True)
class _Kind:
    """How one base state is told; ``{ran}`` in ``text`` is `` after 3.2 h``."""

    text: str
    ended_by: EndedBy | None
    cls: str | None = None


_KINDS = {
    "FAILED": _Kind("failed{ran}", EndedBy.SELF),
    "TIMEOUT": _Kind("ended by Slurm at its time limit", EndedBy.SLURM, "slurm-time-limit"),
    "NODE_FAIL": _Kind("a node of it failed{ran}", EndedBy.FAULT, "slurm-node-fail"),
    "BOOT_FAIL": _Kind("a node of it did not boot", EndedBy.FAULT, "slurm-node-fail"),
    "PREEMPTED": _Kind(
        "pushed out{ran} by a job that goes first", EndedBy.SLURM, "slurm-preempted"
    ),
    "DEADLINE": _Kind("ended by Slurm{ran}: its deadline could not be met", EndedBy.SLURM),
    "OUT_OF_MEMORY": _Kind("killed{ran} for using too much memory", EndedBy.FAULT, "host-oom"),
    "CANCELLED": _Kind("cancelled{ran}", None),
}
#: ``0:n`` of jobs that Slurm itself could not start; n is an error number and no signal.
_LAUNCH_CODES = frozenset({42, 46, 48, 52, 53, 54, 55})


def explain_ended(subject: Subject, state: JobState) -> Verdict:
    """The verdict on a job whose state says that it is over."""
    if state.base == "COMPLETED":
        return _explain_completed(subject)
    return _explain_failed(subject, state)


def _code(subject: Subject) -> ExitCode | None:
    if subject.detail is not None and subject.detail.exit_code is not None:
        return subject.detail.exit_code
    return subject.record.exit_code if subject.record is not None else None


def _explain_completed(subject: Subject) -> Verdict:
    facts = subject.facts
    told = slurm_evidence(subject, "it ended by itself without an error", _NAMES)
    bad_steps = tuple(row for row in subject.steps if row.state.base in ("FAILED", "OUT_OF_MEMORY"))
    against = tuple(
        sacct_evidence(subject, row, "a step of it did not end well") for row in bad_steps
    )
    meaning = facts.exit
    warning = meaning.warning if meaning is not None else None
    summary = f"completed{ran_text(subject)}"
    if meaning is not None and meaning.ok is None:
        summary, warning = clause(meaning.sentence), warning or meaning.sentence
    elif warning:
        summary += f", but {clause(warning)}"
    elif bad_steps:
        summary += f", but step {visible(bad_steps[0].id.text)} failed"
    doubtful = bool(warning or bad_steps)
    logs = read_logs(subject)
    step = read_log_step(logs[0], logs[0].first_error if doubtful else None) if logs else None
    steps = [NextStep("see its steps", subject.sacct(), "read", "exit codes and peak memory")]
    if step is not None:
        steps.insert(0 if doubtful else 1, step)
    return Verdict(
        job=subject.title,
        cluster=facts.cluster,
        state=State.HEALTHY,
        family=family_of("healthy"),
        cls="healthy",
        ended_by=EndedBy.SELF,
        confidence=Confidence.MEDIUM if doubtful else Confidence.HIGH,
        summary=summary,
        since=subject.end,
        evidence=(told,) if told is not None else (),
        against=against,
        missing=facts.missing,
        next=tuple(steps),
        made_at=facts.now,
    )


def _explain_failed(subject: Subject, state: JobState) -> Verdict:
    facts = subject.facts
    kind = _KINDS.get(state.base or "", _Kind("ended{ran}", None))
    logs = read_logs(subject)
    error = first_error(logs)
    launch = _launch_failure(subject, state)
    by_uid = _by_uid(subject, state)
    ended_by = _ended_by(subject, kind, state, by_uid)
    not_why = launch or ended_by in (EndedBy.USER, EndedBy.SLURM) or got_over(subject)
    own_error = error if state.base == "FAILED" and not not_why else None
    cls = _class(subject, kind, state, ended_by, own_error, launch, by_uid)
    culprits = _failed_nodes(subject, logs) if state.base == "NODE_FAIL" else ()
    evidence = _evidence(subject, logs, error, ended_by, culprits, launch)
    return Verdict(
        job=subject.title,
        cluster=facts.cluster,
        state=State.FAILED,
        family=family_of(cls),
        cls=cls,
        ended_by=ended_by,
        confidence=_confidence(subject, state, evidence),
        summary=_summary(subject, kind, state, own_error, launch, by_uid),
        since=_last_progress(subject, logs),
        culprits=culprits,
        evidence=evidence,
        missing=facts.missing,
        next=steps_after(
            subject,
            state,
            logs,
            own_error,
            launch,
            culprits,
        ),
        made_at=facts.now,
    )


def _by_uid(subject: Subject, state: JobState) -> int | None:
    if state.base != "CANCELLED":
        return None
    if state.by_uid is not None:
        return state.by_uid
    record = subject.record
    if record is not None and record.state.base == "CANCELLED":
        return record.state.by_uid
    return None


def _launch_failure(subject: Subject, state: JobState) -> bool:
    if state.base != "FAILED":
        return False
    code = _code(subject)
    if code is None or code.code != 0:
        return False
    if code.signal in _LAUNCH_CODES:
        return True
    # Slurm up to 22.05 gives this reason for every job that died of a signal, too.
    named = subject.job is not None and subject.job.reason == "JobLaunchFailure"
    return named and code.signal == 0


def _ended_by(subject: Subject, kind: _Kind, state: JobState, by_uid: int | None) -> EndedBy | None:
    meaning = subject.facts.exit
    said = meaning.ended_by if meaning is not None else None
    if state.base == "CANCELLED":
        if said == EndedBy.SLURM:
            return EndedBy.SLURM
        # Root may be an administrator or Slurm itself.
        return EndedBy.USER if by_uid or (said == EndedBy.USER and by_uid is None) else None
    if meaning is not None and state.base == "FAILED":
        return EndedBy(said) if said in set(EndedBy) else None
    if state.base == "FAILED" and _killed(_code(subject)):
        return None
    return kind.ended_by


def _killed(code: ExitCode | None) -> bool:
    """Ended by a signal, or a child of its shell was: that alone does not say by whom."""
    return code is not None and (code.signal != 0 or code.code > 128)


def _class(
    subject: Subject,
    kind: _Kind,
    state: JobState,
    ended_by: EndedBy | None,
    error: tuple[LogFacts, LogLine] | None,
    launch: bool,
    by_uid: int | None,
) -> str | None:
    if launch:
        return "slurm-launch-failure"
    if kind.cls is not None:
        return kind.cls
    if state.base == "CANCELLED":
        return "user-interrupt" if _by_owner(subject, by_uid) else None
    if ended_by is EndedBy.SELF and error is not None and _ordinary_exception(error[1].text):
        return "python-exception"
    return None


def _by_owner(subject: Subject, by_uid: int | None) -> bool:
    if by_uid is None:
        return False
    facts = subject.facts
    if facts.detail is not None and facts.detail.user_id is not None:
        return facts.detail.user_id == by_uid
    return facts.viewer_uid == by_uid and subject.owner == facts.viewer


def _ordinary_exception(text: str) -> bool:
    return bool(_EXCEPTION.search(text)) and not _NOT_ORDINARY.search(text)


def _failed_nodes(subject: Subject, logs: tuple[LogFacts, ...]) -> tuple[Culprit, ...]:
    """The nodes that srun itself named, or the only node there was.

    Never the batch host of several, which only reports the end.
    """
    names = dict.fromkeys(name for _, _, name in _node_lines(logs))
    if names:
        why = "Slurm reported that this node failed"
        return tuple(Culprit(host=name, reason=why) for name in names)
    only = subject.only_host
    if only is None:
        return ()
    return (Culprit(host=only, reason="its only node, and Slurm reported a node failure"),)


def _node_lines(logs: tuple[LogFacts, ...]) -> list[tuple[LogFacts, LogLine, str]]:
    out = []
    for log in logs:
        for line in (log.slurm_line, log.first_error, log.last_line):
            found = _NODE_FAILURE.search(line.text) if line is not None else None
            if found is not None and line is not None:
                out.append((log, line, found.group(1)))
    return out


def _evidence(
    subject: Subject,
    logs: tuple[LogFacts, ...],
    error: tuple[LogFacts, LogLine] | None,
    ended_by: EndedBy | None,
    culprits: tuple[Culprit, ...],
    launch: bool,
) -> tuple[Evidence, ...]:
    told = slurm_evidence(subject, "how Slurm says that it ended", _NAMES)
    out: list[Evidence] = []
    for log, line, _ in _node_lines(logs)[:1] if culprits else ():
        out.append(log_evidence(log, line, "Slurm names the node"))
    written = next(((log, log.slurm_line) for log in logs if log.slurm_line is not None), None)
    if written is not None and all(item.text != written[1].text for item in out):
        out.append(log_evidence(*written, "what Slurm itself wrote into the log"))
    if told is not None:
        out.append(told)
    if error is not None and all(item.text != error[1].text for item in out):
        says = "the first error of the log"
        if ended_by is EndedBy.USER or ended_by is EndedBy.SLURM:
            says = "an error in the log; it may only be the effect of being ended"
        elif got_over(subject):
            says = "an error in the log that it got over"
        if subject.restarts:
            says += f"; after {subject.restarts} restarts it may be from an earlier attempt"
        item = log_evidence(*error, says)
        own = ended_by not in (EndedBy.USER, EndedBy.SLURM) and not launch and not got_over(subject)
        out.insert(0 if own and not culprits else len(out), item)
    out.extend(
        sacct_evidence(subject, row, "a step of it")
        for row in subject.steps
        if row.state.base in ("FAILED", "OUT_OF_MEMORY") and row.id.step not in ("extern",)
    )
    return tuple(out[:8])


def _confidence(subject: Subject, state: JobState, evidence: tuple[Evidence, ...]) -> Confidence:
    if not subject.facts.controller_answered:
        # Accounting may show the end of an attempt while the job runs again.
        again = state.base in ("PREEMPTED", "NODE_FAIL", "BOOT_FAIL")
        return Confidence.LOW if again else Confidence.MEDIUM
    families = {item.family for item in evidence}
    outright = state.base in _KINDS and state.base not in ("FAILED", "CANCELLED")
    return Confidence.HIGH if len(families) > 1 or outright else Confidence.MEDIUM


def _summary(
    subject: Subject,
    kind: _Kind,
    state: JobState,
    error: tuple[LogFacts, LogLine] | None,
    launch: bool,
    by_uid: int | None,
) -> str:
    sentence = subject.facts.exit.sentence if subject.facts.exit is not None else ""
    if state.base == "CANCELLED":
        return _cancelled_text(subject, by_uid)
    if state.base == "FAILED":
        code = _code_text(_code(subject))
        if error is not None:
            shown = visible(" ".join(error[1].text.split()))
            return f"failed{ran_text(subject)}: {shown}" + (f" ({code})" if code else "")
        why = clause(sentence.removeprefix("Slurm could not start it: "))
        why = why.removeprefix("failed with ").removeprefix("failed, but ") or code
        head = "could not be started" if launch else f"failed{ran_text(subject)}"
        return f"{head}: {why}" if why else head
    text = kind.text.replace("{ran}", ran_text(subject))
    if state.base == "TIMEOUT" and subject.limit_s is not None:
        text = f"{kind.text} of {clock_text(subject.limit_s)}"
    if state.base == "OUT_OF_MEMORY":
        text += memory_text(subject)
    return text


def _code_text(code: ExitCode | None) -> str:
    if code is None:
        return ""
    if code.signal in _LAUNCH_CODES:
        return f"Slurm reports {code.code}:{code.signal}"
    return f"signal {code.signal}" if code.signal else f"exit code {code.code}"


def _cancelled_text(subject: Subject, by_uid: int | None) -> str:
    record = subject.record
    never = record is not None and record.never_started
    job = subject.job
    # Slurm gives such a job a start, that of its end, but never a node.
    if never or (job is not None and (job.start is None or not job.nodes)):
        when = "before it started"
    else:
        when = ran_text(subject).strip() or "while it ran"
    if by_uid is None:
        return f"cancelled {when}; who did it is not told"
    if _by_owner(subject, by_uid):
        return f"cancelled {when} by its owner"
    if by_uid == 0:
        return f"cancelled {when} by root: an administrator or Slurm itself"
    return f"cancelled {when} by the user with uid {by_uid}"


def memory_text(subject: Subject) -> str:
    """``: largest task 63 GiB of 64 GiB asked for``, as far as accounting tells."""
    peaks = [row.max_rss_bytes for row in subject.steps if row.max_rss_bytes]
    asked = subject.record.req_mem_bytes if subject.record is not None else None
    if not peaks:
        return f"; it asked for {bytes_text(asked)}" if asked else ""
    text = f": largest task {bytes_text(max(peaks))}"
    return f"{text} of {bytes_text(asked)} asked for" if asked else text


def _last_progress(subject: Subject, logs: tuple[LogFacts, ...]) -> datetime | None:
    written = logs[0].mtime if logs else None
    if written is None:
        return subject.end
    return min(written, subject.end) if subject.end is not None else written
