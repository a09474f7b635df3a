"""The heart: facts of one job to a verdict, for any state, with whatever sources answered.

State before cause. A source that is silent never becomes a statement about the job: with the
controller down a job is unknown, never gone.
"""

import dataclasses

from slurmtop.model.facts import JobFacts
from slurmtop.model.job import AccountingRecord, JobState, Phase
from slurmtop.model.text import visible
from slurmtop.model.units import ago_text, plural
from slurmtop.model.verdict import Confidence, Evidence, NextStep, State, Verdict
from slurmtop.triage.combined import combined
from slurmtop.triage.ended import explain_ended
from slurmtop.triage.pending import (
    array_text,
    explain_configuring,
    explain_pending,
    failed_siblings,
)
from slurmtop.triage.running import explain_completing, explain_running, explain_suspended
from slurmtop.triage.sources import sources_of
from slurmtop.triage.subject import Subject, read_logs, sacct_evidence, slurm_evidence

#: Past its time limit by this much a record that still says RUNNING has lost its end.
_LOST_END_S = 3_600.0


def explain_job(facts: JobFacts) -> Verdict:
    """What is going on with one job, why, how we know, and what to do now.

    Slurm and the logs only. Without judged logs (``facts.logs_say``) it names no rank, and
    ``culprits`` holds at most a node that Slurm itself reported as failed. Never raises for facts
    that are missing.
    """
    subject = Subject(facts)
    verdict = combined(subject, _explain(subject))
    if "_" not in facts.asked and "+" not in facts.asked and facts.siblings:
        verdict = _with_siblings(subject, verdict)
    return dataclasses.replace(verdict, sources=sources_of(facts))


def _with_siblings(subject: Subject, verdict: Verdict) -> Verdict:
    """The verdict on one task or part, told as the one of the whole that it stands for."""
    crowd, job = array_text(subject), subject.job
    if not crowd or job is None:
        return verdict
    failed = failed_siblings(subject)
    summary = f"{crowd}. {visible(job.id.text)}: {verdict.summary}"
    if not failed:
        return dataclasses.replace(verdict, summary=summary)
    worst = failed[0]
    told = Evidence(
        family="slurm",
        source=subject.command("squeue", f"-t all -j {worst.id.base}"),
        text=f"{worst.id.text} {worst.state.word} {worst.reason or 'None'}",
        says=f"{plural(len(failed), 'other part')} of it failed",
    )
    command = f"slurmtop why {Subject(dataclasses.replace(subject.facts, job=worst)).id}"
    step = NextStep("see the first that failed", command, "read", "")
    return dataclasses.replace(
        verdict, summary=summary, against=(told, *verdict.against), next=(step, *verdict.next)
    )


def known_anywhere(facts: JobFacts) -> bool:
    """Does the controller or accounting know the job? False is exit status 1 of ``why``."""
    return Subject(facts).known


def _explain(subject: Subject) -> Verdict:
    job = subject.job
    if job is None:
        return _without_controller(subject)
    if not subject.facts.controller_answered and not _log_is_newer(subject):
        return _last_known(subject, job.state)
    phase = job.state.phase
    if job.state.ended:
        return explain_ended(subject, job.state)
    if phase is Phase.PENDING:
        return explain_pending(subject)
    if "CONFIGURING" in job.state.flags:
        return explain_configuring(subject)
    if phase is Phase.RUNNING:
        return explain_running(subject)
    if phase is Phase.ENDING:
        return explain_completing(subject)
    if phase is Phase.SUSPENDED:
        return explain_suspended(subject)
    if phase is Phase.ELSEWHERE:
        return _elsewhere(subject)
    return _unknown_state(subject, job.state)


def _log_is_newer(subject: Subject) -> bool:
    """With the controller silent, a log that was written just now still speaks."""
    job = subject.job
    if job is None or job.state.phase is not Phase.RUNNING:
        return job is not None and job.state.ended
    return bool(read_logs(subject))


def _without_controller(subject: Subject) -> Verdict:
    facts, record = subject.facts, subject.record
    if record is None:
        return _nothing_known(subject)
    if record.state.ended:
        return explain_ended(subject, record.state)
    if not facts.controller_answered:
        return _last_known(subject, record.state)
    return _vanished(subject, record)


def _vanished(subject: Subject, record: AccountingRecord) -> Verdict:
    """The controller has let it go and accounting has not heard of its end yet."""
    facts = subject.facts
    word = visible(record.state.word)
    ran = subject.ran_s()
    since_start = (facts.now - record.start).total_seconds() if record.start is not None else None
    limit = subject.limit_s
    lost = since_start is not None and limit is not None and since_start > limit + _LOST_END_S
    if lost:
        summary = f"ended, result lost: accounting still says {word}, long past its time limit"
        label, why = "ask the administrators to look for it", "accounting has lost its end"
        step = NextStep(label, "sacctmgr show runawayjobs", "read", why)
    else:
        summary = f"ended, result not known yet (accounting still says {word})"
        step = NextStep(
            "look again in a minute", subject.why(), "read", "accounting lags behind the controller"
        )
    told = sacct_evidence(subject, record, "accounting has not heard of the end")
    return Verdict(
        job=subject.title,
        cluster=facts.cluster,
        state=State.UNKNOWN,
        confidence=Confidence.MEDIUM if ran is not None else Confidence.LOW,
        summary=summary,
        evidence=(told,),
        missing=facts.missing,
        next=(step, NextStep("ask accounting", subject.sacct(), "read", "")),
        made_at=facts.now,
    )


def _last_known(subject: Subject, state: JobState) -> Verdict:
    facts = subject.facts
    told: Evidence | None
    if subject.job is not None:
        told = slurm_evidence(subject, "the last answer of the controller")
        source = "it last said"
    else:
        assert subject.record is not None
        told = sacct_evidence(subject, subject.record, "what accounting has")
        source = "accounting says"
    ran = subject.ran_s()
    started = f", started {ago_text(ran)} ago" if ran is not None else ""
    summary = f"not known: the controller is silent; {source} {visible(state.word)}{started}"
    return Verdict(
        job=subject.title,
        cluster=facts.cluster,
        state=State.UNKNOWN,
        summary=summary,
        evidence=(told,) if told is not None else (),
        missing=facts.missing,
        next=_controller_steps(subject),
        made_at=facts.now,
    )


def _controller_steps(subject: Subject) -> tuple[NextStep, ...]:
    return (
        NextStep("look again in a minute", subject.why(), "read", ""),
        NextStep(
            "ask whether the controller is up", subject.command("scontrol", "ping"), "read", ""
        ),
    )


def _nothing_known(subject: Subject) -> Verdict:
    facts = subject.facts
    steps: tuple[NextStep, ...]
    if not facts.controller_answered:
        summary = "not known: the controller is silent; accounting was not asked"
        if facts.accounting_answered is False:
            summary = "not known: neither the controller nor accounting answers"
        elif facts.accounting_answered:
            summary = "not known: the controller is silent; accounting has no record of it"
        steps = _controller_steps(subject)
    elif facts.accounting_answered:
        summary = (
            "unknown: not in the queue and not in accounting; wrong id or cluster, or not yours"
            " to see"
        )
        steps = (
            NextStep("list your jobs", subject.command("squeue", "--me -t all"), "read", ""),
            NextStep("ask accounting", subject.sacct(), "read", "it may lag by a minute"),
        )
    else:
        silent = "does not answer" if facts.accounting_answered is False else "was not asked"
        summary = f"unknown: the controller does not have it (any more), and accounting {silent}"
        steps = (
            NextStep("list your jobs", subject.command("squeue", "--me -t all"), "read", ""),
            NextStep("ask accounting", subject.sacct(), "read", ""),
        )
    return Verdict(
        job=subject.title,
        cluster=facts.cluster,
        state=State.UNKNOWN,
        summary=summary,
        missing=facts.missing,
        next=steps,
        made_at=facts.now,
    )


def _elsewhere(subject: Subject) -> Verdict:
    facts = subject.facts
    told = slurm_evidence(subject, "this cluster handed it over; that is no failure")
    command = f"sacct --federation -j {subject.id} -o JobID,Cluster,State"
    return Verdict(
        job=subject.title,
        cluster=facts.cluster,
        state=State.UNKNOWN,
        confidence=Confidence.HIGH,
        summary="started on another cluster of the federation; that is no failure",
        evidence=(told,) if told is not None else (),
        missing=facts.missing,
        next=(NextStep("find its cluster", command, "read", ""),),
        made_at=facts.now,
    )


def _unknown_state(subject: Subject, state: JobState) -> Verdict:
    facts = subject.facts
    told = slurm_evidence(subject, "the state as Slurm prints it")
    return Verdict(
        job=subject.title,
        cluster=facts.cluster,
        state=State.UNKNOWN,
        summary=f"in a state that slurmtop does not know: {visible(state.word)}",
        evidence=(told,) if told is not None else (),
        missing=facts.missing,
        next=(NextStep("see all that Slurm knows", subject.show_job(), "read", ""),),
        made_at=facts.now,
    )
