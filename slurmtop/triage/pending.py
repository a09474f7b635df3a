"""Why a job that has not started waits, for what, and until when."""

import re
import shlex
from datetime import datetime

from slurmtop.model.job import Job, Phase, ReasonInfo
from slurmtop.model.text import visible
from slurmtop.model.units import ago_text, plural
from slurmtop.model.verdict import Confidence, Evidence, NextStep, State, Verdict
from slurmtop.triage.catalogue import family_of
from slurmtop.triage.subject import Subject, clause, queue_source, slurm_evidence

_PARENT = re.compile(r"(after[a-z]*):([0-9]{1,10})")
_UNAVAILABLE = re.compile(r"UnavailableNodes:_?([A-Za-z0-9_.,\[\]-]{1,200})")
_QOS_FIELDS = "format=Name,MaxTRESPU,MaxJobsPU,GrpTRES,MaxWall"
_HELD_FLAGS = frozenset({"REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
#: What a flag says where Slurm gives no reason beside it.
_FLAG_MEANS = {
    "REQUEUE_HOLD": "it was put back in the queue and held",
    "SPECIAL_EXIT": "it ended with an exit that it or the site set apart, and was put back",
    "RESV_DEL_HOLD": "its reservation was deleted",
    "REQUEUED": "it is being put back in the queue",
    "REQUEUE_FED": "it is being put back in the queue of its federation",
    "EXPEDITING": "it is being put back in the queue at once, once its nodes are checked",
}
#: A configuring job is waiting for nodes to boot; past this the site should hear of it.
_SLOW_BOOT_S = 900.0


def explain_pending(subject: Subject) -> Verdict:
    """The verdict on a job that waits, is held, or was put back into the queue."""
    job = subject.job
    assert job is not None
    facts = subject.facts
    reason = facts.reason
    if reason is None or reason.kind == "ok":
        reason = _reason(job)
    requeued = subject.restarts > 0 or "REQUEUED" in job.state.flags
    cls = "slurm-requeue" if requeued else None
    evidence = slurm_evidence(
        subject,
        "why it does not run",
        ("JobState", "Reason", "Dependency"),
    )
    start = _expected(subject, job)
    return Verdict(
        job=subject.title,
        cluster=facts.cluster,
        state=State.PENDING,
        family=family_of(cls),
        cls=cls,
        confidence=Confidence.HIGH if reason.kind != "unknown" else Confidence.LOW,
        summary=_summary(subject, job, reason, requeued),
        evidence=tuple(item for item in (evidence, start) if item is not None),
        missing=facts.missing,
        next=_next(subject, job, reason),
        made_at=facts.now,
    )


def explain_configuring(subject: Subject) -> Verdict:
    """Nodes are given, but still boot or run their prolog: the program has not started."""
    facts = subject.facts
    since = subject.ran_s()
    for_text = f" for {ago_text(since)}" if since is not None else ""
    slow = since is not None and since > _SLOW_BOOT_S
    summary = f"has its nodes, which have been getting ready{for_text} (boot or prolog)"
    if slow:
        summary += "; that is long: tell the administrators"
    evidence = slurm_evidence(subject, "the nodes are not ready yet")
    return Verdict(
        job=subject.title,
        cluster=facts.cluster,
        state=State.PENDING,
        confidence=Confidence.HIGH,
        summary=summary,
        evidence=(evidence,) if evidence is not None else (),
        missing=facts.missing,
        next=(
            NextStep("look again", subject.why(), "read", "it starts by itself"),
            NextStep("see the nodes", subject.show_job(), "read", ""),
        ),
        made_at=facts.now,
    )


def _reason(job: Job) -> ReasonInfo:
    word = job.reason or "None"
    flag = next((flag for flag in job.state.flags if flag in _FLAG_MEANS), None)
    if word == "None" and flag is not None:
        return ReasonInfo(flag, "held" if flag in _HELD_FLAGS else "ok", _FLAG_MEANS[flag], "")
    if word == "None":
        return ReasonInfo(word, "ok", "the scheduler has not looked at it yet", "wait")
    return ReasonInfo(word, "unknown", "Slurm gives a reason slurmtop does not know", "")


def _summary(subject: Subject, job: Job, reason: ReasonInfo, requeued: bool) -> str:
    meaning = visible(clause(reason.meaning)) or visible(reason.word)
    word = "" if " " in reason.word else f" ({visible(reason.word)})"
    parents = _parents_text(job)
    if _held(job, reason):
        return f"held{word} until it is released: {meaning}"
    if reason.kind == "never":
        on = f"; it waits for {parents}" if parents else ""
        return f"never starts as it is{word}: {meaning}{on}"
    head = "waiting" + _again_text(subject, requeued)
    if job.submit is not None:
        head += f" {ago_text((subject.facts.now - job.submit).total_seconds())}"
    if parents:
        return f"{head} for {parents}"
    text = f"{head}{_start_text(subject, job, reason)}{word}: {meaning}"
    return f"{text}: {visible(reason.detail)}" if reason.detail else text


def _again_text(subject: Subject, requeued: bool) -> str:
    if subject.restarts:
        return f" again ({plural(subject.restarts, 'restart')})"
    return " again (requeued)" if requeued else ""


def _held(job: Job, reason: ReasonInfo) -> bool:
    return reason.kind == "held" or bool(_HELD_FLAGS.intersection(job.state.flags))


def _parents(job: Job) -> dict[str, str]:
    """The jobs of a dependency such as ``afterok:4709(unfulfilled)``: id to kind."""
    return {number: kind for kind, number in _PARENT.findall(job.dependency or "")}


def _parents_text(job: Job) -> str:
    parents = _parents(job)
    named = ", ".join(f"job {number} ({kind})" for number, kind in list(parents.items())[:3])
    return f"{named} and {len(parents) - 3} more" if len(parents) > 3 else named


def _start_text(subject: Subject, job: Job, reason: ReasonInfo) -> str:
    begin = reason.word == "BeginTime"
    when = _start(subject, job)
    if when is None and begin:
        when = job.eligible
    ahead = (when - subject.facts.now).total_seconds() if when is not None else 0.0
    if ahead <= 0:
        return ""
    if begin:
        return f", starts in {ago_text(ahead)} at the earliest"
    return f", may start in {ago_text(ahead)}"


def _start(subject: Subject, job: Job) -> datetime | None:
    """The scheduler's guess where it lies ahead; it may lie in the past and means nothing then."""
    when = subject.facts.expected_start or job.start
    return when if when is not None and when > subject.facts.now else None


def _expected(subject: Subject, job: Job) -> Evidence | None:
    when = _start(subject, job)
    if when is None:
        return None
    source = subject.command("squeue", f"--start -j {job.id.base}")
    if subject.facts.expected_start is None:
        source, _ = queue_source(subject, job)
    return Evidence(
        family="slurm",
        source=source,
        text=f"StartTime={when:%Y-%m-%dT%H:%M:%S}",
        says="the scheduler's guess of the start, in UTC; it moves with the queue",
        time=when,
    )


def _next(subject: Subject, job: Job, reason: ReasonInfo) -> tuple[NextStep, ...]:
    number = subject.id
    cancel = subject.write(
        "give it up", subject.command("scancel", number), "it has done no work yet"
    )
    advice = reason.advice
    if _held(job, reason):
        release = subject.command("scontrol", f"release {number}")
        if reason.word == "JobHeldAdmin":
            step = NextStep("ask an operator to release it", release, "write", advice)
        else:
            step = subject.write("release it", release, advice)
        return (step, cancel)
    steps = [
        NextStep(f"see what job {parent} does", f"slurmtop why {parent}", "read", "it waits for it")
        for parent in list(_parents(job))[:3]
    ]
    if reason.kind == "never":
        steps.append(NextStep("see what it asks for", subject.show_job(), "read", advice))
        steps.append(cancel)
        return tuple(steps)
    if not steps and _start(subject, job) is not None and reason.kind == "queue":
        return (NextStep("look again later", subject.why(), "read", advice),)
    return (*steps, *([] if steps else _by_reason(subject, job, reason)))


def _by_reason(subject: Subject, job: Job, reason: ReasonInfo) -> list[NextStep]:
    """The command that shows what this reason is about."""
    word, advice, number = reason.word, reason.advice, subject.id
    partition = shlex.quote(visible(job.partitions[0])) if job.partitions else None
    if word == "JobArrayTaskLimit":
        command = subject.command("scontrol", f"update JobId={job.id.base} ArrayTaskThrottle=0")
        return [
            NextStep("see its throttle", subject.show_job(), "read", advice),
            subject.write("take the throttle away", command, "0 means no limit"),
        ]
    if word == "Priority":
        command = subject.command("sprio", f"-l -j {number}")
        return [NextStep("see what its priority is made of", command, "read", advice)]
    if word == "Resources" and partition is not None:
        command = subject.command("sinfo", f"-p {partition}")
        return [NextStep("see the nodes it waits for", command, "read", advice)]
    if word.startswith("ReqNodeNotAvail"):
        found = _UNAVAILABLE.search(reason.detail or job.reason or "")
        which = f" -n {shlex.quote(found.group(1))}" if found is not None else ""
        command = subject.command("sinfo", f"-R{which}")
        return [NextStep("see why the node is away", command, "read", advice)]
    if word.startswith("Partition") and partition is not None:
        command = subject.command("scontrol", f"show partition {partition}")
        return [NextStep("see the partition", command, "read", advice)]
    if reason.kind == "limit" and job.qos and job.qos.isprintable():
        command = f"sacctmgr show qos {shlex.quote(job.qos)} {_QOS_FIELDS}"
        return [NextStep("see the limits of its QOS", command, "read", advice)]
    if _start(subject, job) is not None:
        return [NextStep("look again later", subject.why(), "read", advice)]
    command = subject.command("squeue", f"--start -j {number}")
    return [NextStep("ask when it may start", command, "read", advice)]


def array_text(subject: Subject) -> str:
    """``3 running, 12 waiting, 1 failed`` over an array or het job; empty for a plain one."""
    jobs = {job.key: job for job in subject.facts.siblings}
    if subject.job is not None:
        jobs[subject.job.key] = subject.job
    if len(jobs) < 2:
        return ""
    counts: dict[str, int] = {}
    for job in jobs.values():
        word = _PHASE_WORDS.get(job.state.phase, "unknown")
        counts[word] = counts.get(word, 0) + (job.id.tasks.count if job.id.tasks else 1)
    noun = "part" if any(job.id.het_offset is not None for job in jobs.values()) else "task"
    order = [*_PHASE_WORDS.values(), "unknown"]
    parts = ", ".join(f"{counts[word]} {word}" for word in order if word in counts)
    return f"{plural(sum(counts.values()), noun)}: {parts}"


def failed_siblings(subject: Subject) -> tuple[Job, ...]:
    """The other tasks or parts of its array or het job that did not end well."""
    return tuple(job for job in subject.facts.siblings if job.state.phase is Phase.FAILED)


#: In the order in which they are told: what needs somebody comes first.
_PHASE_WORDS = {
    Phase.FAILED: "failed",
    Phase.RUNNING: "running",
    Phase.SUSPENDED: "suspended",
    Phase.ENDING: "ending",
    Phase.PENDING: "waiting",
    Phase.CANCELLED: "cancelled",
    Phase.COMPLETED: "completed",
    Phase.ELSEWHERE: "on another cluster",
}
