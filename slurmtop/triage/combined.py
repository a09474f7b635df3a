"""Slurm's word and what the logs tell, as one verdict.

Whether a job waits, runs or has ended is Slurm's to say, and so is an end that Slurm itself made
(time limit, preemption, a failed node, a cancel). Why a job failed by itself, and who was first,
the logs tell; whether one that still runs is stuck, and who holds it up, its nodes and the logs.
"""

import dataclasses
import shlex
from collections.abc import Iterable

from slurmtop.model.facts import Died, LogsSay
from slurmtop.model.job import AccountingRecord, JobState, Phase
from slurmtop.model.text import visible
from slurmtop.model.verdict import (
    EVIDENCE_LIMIT,
    Confidence,
    Culprit,
    EndedBy,
    Evidence,
    Missing,
    NextStep,
    State,
    Verdict,
)
from slurmtop.triage.after import steps_while_hung
from slurmtop.triage.catalogue import family_of
from slurmtop.triage.ended import memory_text
from slurmtop.triage.fault_classes import SLURM, TIMEOUTS
from slurmtop.triage.live.joined import with_live
from slurmtop.triage.live.patience import LATE_S
from slurmtop.triage.subject import Subject, ran_text, read_logs, sacct_evidence

#: Ends that Slurm made, or counted, by itself: no log can say otherwise.
_BY_SLURM = frozenset(
    {"TIMEOUT", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "CANCELLED"}
)
#: Classes of the logs that say no more than that something was killed or ended.
_ONLY_THAT_IT_ENDED = frozenset({None, "task-exit", "peer-died", "socket-reset"})
#: What a log tells of the way Slurm ends a job says nothing new beside Slurm's own word.
_EFFECTS = frozenset({None, "healthy", "user-interrupt", "task-exit", "peer-died", "socket-reset"})
#: A job whose log was written so lately may be ending, or go on with another step.
_JUST_NOW_S = 120.0
_SIGKILL = 9
_SIGNALS = {4: "SIGILL", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV"}
_UP = {Confidence.LOW: Confidence.MEDIUM, Confidence.MEDIUM: Confidence.HIGH}


def combined(subject: Subject, by_slurm: Verdict) -> Verdict:
    """``by_slurm`` is what Slurm's records and the first error line alone make of the job."""
    say, state = subject.facts.logs_say, subject.state
    if state is None:
        return by_slurm
    if state.ended:
        return by_slurm if say is None else _of_ended(subject, state, by_slurm, say)
    if state.phase is Phase.RUNNING and "CONFIGURING" not in state.flags:
        by_logs = by_slurm if say is None else _of_running(subject, by_slurm, say)
        # A controller that is silent may have missed its end.
        return with_live(subject, by_logs) if subject.facts.controller_answered else by_logs
    return by_slurm


# Jobs that have ended


def _of_ended(subject: Subject, state: JobState, by_slurm: Verdict, say: LogsSay) -> Verdict:
    if state.base == "COMPLETED":
        return _completed(by_slurm, say)
    if state.base == "OUT_OF_MEMORY":
        return _out_of_memory(subject, by_slurm, say)
    if state.base in _BY_SLURM:
        return _ended_by_slurm(by_slurm, say)
    if state.base != "FAILED" or by_slurm.ended_by in (EndedBy.SLURM, EndedBy.USER):
        return by_slurm
    if by_slurm.cls is not None and family_of(by_slurm.cls) == SLURM:
        # It could not be started: nothing of this run stands in a log.
        return by_slurm
    return _failed(subject, by_slurm, say)


def _completed(by_slurm: Verdict, say: LogsSay) -> Verdict:
    """A script may end well although a step of it did not; what that step said is told."""
    logs = say.verdict
    if logs.state is not State.FAILED or not by_slurm.against or not logs.evidence:
        return by_slurm
    shown = dataclasses.replace(logs.evidence[0], says=f"what that step said: {logs.summary}")
    return dataclasses.replace(by_slurm, against=(*by_slurm.against, shown))


def _ended_by_slurm(by_slurm: Verdict, say: LogsSay) -> Verdict:
    """Slurm's class stands. A failure that the log tells besides is shown, and nobody is named."""
    logs = say.verdict
    if logs.cls == by_slurm.cls:
        culprits = by_slurm.culprits or logs.culprits
        evidence = _evidence(by_slurm.evidence, logs.evidence)
        return dataclasses.replace(by_slurm, culprits=culprits, evidence=evidence)
    told = logs.state in (State.FAILED, State.HUNG) and logs.cls not in _EFFECTS
    if not told or family_of(logs.cls) == SLURM or say.moved_on or not logs.evidence:
        return by_slurm
    shown = dataclasses.replace(logs.evidence[0], says=f"in its log: {logs.summary}")
    rest = tuple(one for one in by_slurm.against if one.text != shown.text)
    return dataclasses.replace(by_slurm, against=(shown, *rest))


def _out_of_memory(subject: Subject, by_slurm: Verdict, say: LogsSay) -> Verdict:
    logs = say.verdict
    culprits: tuple[Culprit, ...] = ()
    evidence: Iterable[Evidence] = logs.evidence if logs.cls == "host-oom" else ()
    if logs.cls == "host-oom":
        culprits = logs.culprits
    elif say.died is not None and say.died.signal == _SIGKILL:
        culprits = (_culprit(say, say.died, _tasks(subject)),)
        evidence = (say.died.evidence,)
    if not say.only_newest:
        culprits = ()
    return dataclasses.replace(
        by_slurm, culprits=culprits, evidence=_evidence(by_slurm.evidence, evidence)
    )


def _step_out_of_memory(
    subject: Subject, by_slurm: Verdict, say: LogsSay, step: AccountingRecord
) -> Verdict:
    """Slurm counted a kill for lack of memory in one step of a job that went on to fail."""
    told = sacct_evidence(subject, step, "Slurm counted a kill for lack of memory in this step")
    name = visible(step.id.text)
    summary = f"failed{ran_text(subject)}: step {name} ran out of memory{memory_text(subject)}"
    found = dataclasses.replace(
        by_slurm,
        family=family_of("host-oom"),
        cls="host-oom",
        ended_by=EndedBy.FAULT,
        confidence=Confidence.HIGH,
        summary=summary,
        evidence=_evidence((told,), by_slurm.evidence),
    )
    return _out_of_memory(subject, found, say)


def _failed(subject: Subject, by_slurm: Verdict, say: LogsSay) -> Verdict:
    logs = say.verdict
    if logs.state in (State.HEALTHY, State.RECOVERING, State.SLOW) or logs.cls == "slurm-requeue":
        # What went wrong stands in no line that was read: an error in it was got over.
        return _with_missing(by_slurm, logs)
    starved = next((one for one in subject.steps if one.state.base == "OUT_OF_MEMORY"), None)
    if starved is not None and logs.cls in _ONLY_THAT_IT_ENDED:
        return _step_out_of_memory(subject, by_slurm, say, starved)
    if say.died is not None and logs.cls in _ONLY_THAT_IT_ENDED:
        return _died(subject, by_slurm, say, say.died)
    if logs.cls is None and not logs.evidence:
        return _with_missing(by_slurm, logs)
    evidence = _evidence(logs.evidence, by_slurm.evidence)
    return dataclasses.replace(
        by_slurm,
        family=family_of(logs.cls),
        cls=logs.cls,
        ended_by=logs.ended_by or by_slurm.ended_by,
        confidence=_joined(subject, logs, say),
        summary=_summary(subject, logs),
        since=logs.since or by_slurm.since,
        culprits=logs.culprits if say.only_newest else (),
        collective=logs.collective if say.only_newest else None,
        evidence=_doubted(subject, say, evidence),
        against=(*logs.against, *by_slurm.against),
        missing=tuple(dict.fromkeys((*by_slurm.missing, *logs.missing))),
        next=_steps(evidence, by_slurm.next, logs.next),
    )


def _died(subject: Subject, by_slurm: Verdict, say: LogsSay, died: Died) -> Verdict:
    """One process crashed or was killed first; what the others say of it explains nothing.

    Who got SIGKILL from nobody known mostly ran out of memory, but no line says so.
    """
    killed = died.signal == _SIGKILL
    culprit = _culprit(say, died, _tasks(subject))
    who = f"rank {culprit.rank}" if culprit.rank is not None else "a process"
    if culprit.rank is None and died.task is not None:
        who = f"task {died.task}"
    place = f" on {visible(culprit.host)}" if culprit.host else ""
    more = "; perhaps for lack of memory (host-oom)" if killed else ""
    summary = f"failed{ran_text(subject)}: {who}{place} {_how(died)} before any other ended{more}"
    proof = died.evidence
    if killed:
        proof = dataclasses.replace(proof, says=proof.says + memory_text(subject))
    evidence = _evidence((proof,), (*say.verdict.evidence, *by_slurm.evidence))
    sure = Confidence.MEDIUM if killed else Confidence.HIGH
    missing = _memory_missing(subject, culprit.host) if killed else ()
    steps = (_memory_step(subject), *by_slurm.next) if killed else by_slurm.next
    return dataclasses.replace(
        by_slurm,
        family=family_of("task-exit"),
        cls="task-exit",
        ended_by=None if killed else EndedBy.SELF,
        confidence=sure if say.only_newest else Confidence.LOW,
        summary=summary,
        since=say.verdict.since or by_slurm.since,
        culprits=(culprit,) if say.only_newest else (),
        evidence=_doubted(subject, say, evidence),
        missing=tuple(dict.fromkeys((*by_slurm.missing, *missing))),
        next=_steps(evidence, steps, ()),
    )


def _how(died: Died) -> str:
    if died.signal == _SIGKILL:
        return "was killed (SIGKILL)"
    return f"crashed ({_SIGNALS.get(died.signal, f'signal {died.signal}')})"


def _memory_missing(subject: Subject, host: str | None) -> tuple[Missing, ...]:
    where = f" of {visible(host)}" if host else " of its node"
    why = f"the kernel log{where} was not read: it tells whether memory ran out there"
    on = f"ssh {shlex.quote(host)} " if host else ""
    return (Missing("kernel", why, f"{on}sudo dmesg -T | grep -Ei 'out of memory|oom'"),)


def _memory_step(subject: Subject) -> NextStep:
    fields = "JobID,State,ExitCode,MaxRSS,MaxRSSNode,MaxRSSTask,ReqMem"
    command = subject.command("sacct", f"-j {subject.id} -o {fields}")
    why = "a largest task near what was asked for speaks for a lack of memory"
    return NextStep("see whether memory ran out", command, "read", why)


def _tasks(subject: Subject) -> int | None:
    """How many tasks the job was given."""
    fields = subject.detail.fields if subject.detail is not None else ()
    value = next((value for name, value in fields if name == "NumTasks"), "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 9 else None


def _culprit(say: LogsSay, died: Died, tasks: int | None) -> Culprit:
    rank = died.rank
    if rank is None and died.task is not None and _task_is_rank(say, died.task, tasks):
        rank = died.task
    reason = f"{_how(died)} before any other ended"
    if rank is None and died.task is not None:
        reason = f"task {died.task} {reason}"
    return Culprit(rank=rank, host=died.host, reason=reason)


def _task_is_rank(say: LogsSay, task: int, tasks: int | None) -> bool:
    """Is srun's task the rank of that number? Where srun alone launched as many tasks as there
    are ranks, by the program's word or by the ranks that are seen to write."""
    if tasks is None or say.launched:
        return False
    if say.world_size is not None:
        return tasks == say.world_size
    return len(say.seen_ranks) > 1 and say.seen_ranks | {task} == set(range(tasks))


# Jobs that run


def _of_running(subject: Subject, by_slurm: Verdict, say: LogsSay) -> Verdict:
    logs = say.verdict
    if logs.state is State.HEALTHY:
        return by_slurm
    going_on = say.moved_on or not say.only_newest
    if logs.state in (State.SLOW, State.RECOVERING) and not going_on:
        return _alive(by_slurm, logs, logs.state, logs.summary)
    broken = logs.state is State.HUNG or (logs.state is State.FAILED and say.hard)
    if not broken or going_on:
        return by_slurm
    if logs.state is State.HUNG and say.warned and (say.waited_s or 0.0) <= LATE_S:
        # Who only warns waits on, as for a rank that saves: a minute of that is no hang yet.
        summary = f"may be stuck: {logs.summary}"
        verdict = _alive(by_slurm, logs, State.UNKNOWN, summary)
        return dataclasses.replace(
            verdict, family=None, cls=None, confidence=Confidence.LOW, culprits=()
        )
    if logs.state is State.HUNG:
        return _hung(subject, by_slurm, logs, f"stuck: {logs.summary}")
    summary = f"still running, but it has failed: {logs.summary}"
    waited = logs.collective is not None or family_of(logs.cls) == TIMEOUTS
    if waited or not _written_just_now(subject):
        return _hung(subject, by_slurm, logs, summary)
    # It may be about to end, or its script goes on with the next step.
    summary = f"a part of it has failed, and its log is still written: {logs.summary}"
    return _alive(by_slurm, logs, State.UNKNOWN, summary)


def _hung(subject: Subject, by_slurm: Verdict, logs: Verdict, summary: str) -> Verdict:
    verdict = _alive(by_slurm, logs, State.HUNG, summary)
    return dataclasses.replace(verdict, next=(*verdict.next, *steps_while_hung(subject)))


def _written_just_now(subject: Subject) -> bool:
    written = [one.mtime for one in read_logs(subject) if one.mtime is not None]
    return bool(written) and (subject.facts.now - max(written)).total_seconds() < _JUST_NOW_S


def _alive(by_slurm: Verdict, logs: Verdict, state: State, summary: str) -> Verdict:
    evidence = _evidence(logs.evidence, by_slurm.evidence)
    return dataclasses.replace(
        by_slurm,
        state=state,
        family=family_of(logs.cls),
        cls=logs.cls,
        confidence=logs.confidence,
        summary=summary,
        since=logs.since or by_slurm.since,
        culprits=logs.culprits,
        collective=logs.collective,
        evidence=evidence,
        against=(*logs.against, *by_slurm.against),
        missing=tuple(dict.fromkeys((*by_slurm.missing, *logs.missing))),
        next=_steps(evidence, by_slurm.next, logs.next),
    )


# What both have


def _summary(subject: Subject, logs: Verdict) -> str:
    """``failed after 3 s: what the logs say (exit code 1)``."""
    how = _exit_text(subject)
    why = visible(logs.summary).removeprefix("the program ended with ")
    return f"failed{ran_text(subject)}: {why}{how}"


def _exit_text(subject: Subject) -> str:
    detail, record = subject.detail, subject.record
    code = detail.exit_code if detail is not None else None
    code = code or (record.exit_code if record is not None else None)
    if code is None or not (code.code or code.signal):
        return ""
    return f" (signal {code.signal})" if code.signal else f" (exit code {code.code})"


def _joined(subject: Subject, logs: Verdict, say: LogsSay) -> Confidence:
    """Two families of evidence say the same: the logs why, and Slurm that it failed."""
    if not subject.facts.controller_answered or not say.only_newest:
        return min(logs.confidence, Confidence.MEDIUM, key=_HOW_SURE.index)
    rivalled = any(one.says.startswith("could also be") for one in logs.against)
    if logs.cls is None or rivalled:
        return logs.confidence
    return _UP.get(logs.confidence, logs.confidence)


_HOW_SURE = (Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH)


def _doubted(
    subject: Subject, say: LogsSay, evidence: tuple[Evidence, ...]
) -> tuple[Evidence, ...]:
    """Where earlier runs may have written to the same log, each of its lines says so."""
    if say.only_newest or not subject.restarts:
        return evidence
    note = f"; after {subject.restarts} restarts it may be from an earlier attempt"
    return tuple(
        dataclasses.replace(one, says=one.says + note)
        if one.line is not None and note not in one.says
        else one
        for one in evidence
    )


def _evidence(first: Iterable[Evidence], then: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Both, each line once. Slurm's own word is among the eight however much a log says."""
    out: dict[str, Evidence] = {}
    for one in (*first, *then):
        out.setdefault(" ".join(one.text.split()), one)
    kept = list(out.values())
    slurm = [one for one in kept if one.family == "slurm" and one.line is None][:1]
    if slurm and kept.index(slurm[0]) >= EVIDENCE_LIMIT:
        kept.remove(slurm[0])
        kept.insert(EVIDENCE_LIMIT - 1, slurm[0])
    return tuple(kept[:EVIDENCE_LIMIT])


def _steps(
    evidence: tuple[Evidence, ...], slurm: Iterable[NextStep], logs: Iterable[NextStep]
) -> tuple[NextStep, ...]:
    """The proof in its log first, then what Slurm offers, safest first."""
    steps = list(slurm)
    proof = _read_proof(evidence[0]) if evidence else None
    if proof is not None:
        steps = [one for one in steps if not one.command.startswith(("less ", "tail "))]
        steps.insert(0, proof)
    steps.extend(one for one in logs if one.command not in {step.command for step in steps})
    return tuple(sorted(steps, key=lambda step: step.effect != "read"))


def _read_proof(proof: Evidence) -> NextStep | None:
    """The command that shows the line of a file; None for what is no line of a file."""
    path = proof.source
    if proof.line is None or not path.startswith("/") or not path.isprintable():
        return None
    return NextStep("read the log there", f"less +{proof.line} {shlex.quote(path)}", "read", "")


def _with_missing(by_slurm: Verdict, logs: Verdict) -> Verdict:
    return dataclasses.replace(
        by_slurm, missing=tuple(dict.fromkeys((*by_slurm.missing, *logs.missing)))
    )
