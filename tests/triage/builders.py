"""Small builders for the facts that triage reads, and one scenario for every state."""

from datetime import UTC, datetime, timedelta

from slurmtop.model.facts import JobFacts, LogFacts, LogLine, LogStatus, Progress
from slurmtop.model.ids import JobId, JobKey, TaskSet
from slurmtop.model.job import (
    AccountingRecord,
    ExitCode,
    ExitMeaning,
    Job,
    JobDetail,
    JobState,
    LimitKind,
    ReasonInfo,
    TimeLimit,
    Tres,
)
from slurmtop.model.verdict import Missing
from tests.triage.logs_told import CRASHED, KILLED, LIMIT, RAISED, STALL, SURVIVED, TIMED_OUT, say

NOW = datetime(2031, 5, 5, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
FLAGS = ("COMPLETING", "CONFIGURING", "STOPPED", "REQUEUED", "REVOKED", "REQUEUE_HOLD")


def state(word: str, by_uid: int | None = None) -> JobState:
    if word in FLAGS:
        return JobState(word, None, (word,))
    known = ("PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT")
    more = ("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY")
    if word in known or word in more:
        return JobState(word, word, by_uid=by_uid)
    return JobState(word, None, (word,))


def job_id(text: str) -> JobId:
    if "_[" in text:
        base, inner = text[:-1].split("_[")
        low, high = inner.split("-")
        return JobId(text, base, tasks=TaskSet(inner, int(high) - int(low) + 1))
    if "_" in text:
        base, task = text.split("_")
        return JobId(text, base, task=int(task))
    if "+" in text:
        base, offset = text.split("+")
        return JobId(text, base, het_offset=int(offset))
    return JobId(text, text)


def job(word: str, id: str = "4711", **changes: object) -> Job:
    parsed = job_id(id)
    values: dict[str, object] = {
        "key": JobKey("", parsed.stable),
        "id": parsed,
        "name": "llm-pretrain",
        "user": "anna",
        "state": state(word),
        "partitions": ("gpu",),
        "submit": NOW - 4 * HOUR,
        "limit": TimeLimit(LimitKind.SECONDS, 86_400),
        "node_count": 2,
        "tres": Tres(gpus=16),
    }
    if word == "PENDING":
        values["reason"] = "Priority"
    else:
        values.update(start=NOW - 3 * HOUR, end=NOW + 21 * HOUR, nodes="gpu[01-02]")
    if state(word).ended or word == "COMPLETING":
        values["end"] = NOW - timedelta(minutes=5)
    values.update(changes)
    return Job(**values)  # type: ignore[arg-type]


def detail(of: Job, exit_text: str = "0:0", **changes: object) -> JobDetail:
    code, signal = (int(part) for part in exit_text.split(":"))
    values: dict[str, object] = {
        "job": of,
        "user_id": 20011,
        "exit_code": ExitCode(code, signal),
        "requeueable": True,
        "batch": True,
        "batch_host": "gpu01" if of.nodes else None,
        "fields": (
            ("JobId", of.id.base),
            ("JobState", of.state.word),
            ("Reason", of.reason or "None"),
            ("Dependency", of.dependency or "(null)"),
            ("ExitCode", exit_text),
        ),
    }
    values.update(changes)
    return JobDetail(**values)  # type: ignore[arg-type]


def row(
    word: str, id: str = "4711", step: str | None = None, **changes: object
) -> AccountingRecord:
    parsed = job_id(id)
    text = f"{id}.{step}" if step else id
    values: dict[str, object] = {
        "id": JobId(text, parsed.base, task=parsed.task, step=step),
        "user": None if step else "anna",
        "state": state(word),
        "exit_code": ExitCode(0, 0),
        "submit": NOW - 4 * HOUR,
        "start": NOW - 3 * HOUR,
        "end": NOW - HOUR if state(word).ended else None,
        "elapsed_s": 7_200 if state(word).ended else 10_800,
        "limit": TimeLimit(LimitKind.SECONDS, 86_400),
    }
    values.update(changes)
    return AccountingRecord(**values)  # type: ignore[arg-type]


def line(text: str, number: int | None = 120) -> LogLine:
    return LogLine(text, number, 4_096)


def log(label: str = "stdout", quiet_s: float | None = 12.0, **changes: object) -> LogFacts:
    path = "/scratch/anna/run9/4711." + ("err" if label == "stderr" else "out")
    values: dict[str, object] = {
        "label": label,
        "path": path,
        "status": LogStatus.READ,
        "size": 10_000,
        "mtime": NOW - timedelta(seconds=quiet_s) if quiet_s is not None else None,
        "last_line": line("iter done", 981),
    }
    values.update(changes)
    return LogFacts(**values)  # type: ignore[arg-type]


STEP = Progress(48_213, 100_000, line("step 48213/100000 loss 2.113", 980))
WATCHDOG = LogLine(
    "[rank3]:[E ProcessGroupNCCL.cpp:632] Watchdog caught collective operation timeout",
    None,
    9_000,
)
TRACE = line("ValueError: expected 8 columns, got 7", 412)


def facts(**changes: object) -> JobFacts:
    values: dict[str, object] = {"asked": "4711", "cluster": "", "now": NOW}
    values.update(changes)
    return JobFacts(**values)  # type: ignore[arg-type]


def live(word: str, exit_text: str = "0:0", **changes: object) -> JobFacts:
    """Facts with the queue's record and ``show job`` of one state."""
    job_changes = changes.pop("job_changes", {})
    detail_changes = changes.pop("detail_changes", {})
    assert isinstance(job_changes, dict)
    assert isinstance(detail_changes, dict)
    record = job(word, str(changes.get("asked", "4711")), **job_changes)
    return facts(job=record, detail=detail(record, exit_text, **detail_changes), **changes)


def why_pending(
    word: str, kind: str, meaning: str, advice: str = "", **job_changes: object
) -> JobFacts:
    return live(
        "PENDING",
        reason=ReasonInfo(word, kind, meaning, advice),
        job_changes={"reason": word, **job_changes},
    )


def scenarios() -> dict[str, JobFacts]:
    """One job for every state and every way of not knowing."""
    array = (job("RUNNING", "4711_0"), job("RUNNING", "4711_1"), job("PENDING", "4711_[2-19]"))
    gone = {"accounting_answered": True}
    return {
        "pending-priority": why_pending(
            "Priority",
            "queue",
            "Other jobs are ahead in the same partition.",
            "Wait.",
            start=NOW + 2.5 * HOUR,
        ),
        "pending-no-reason": live("PENDING", job_changes={"reason": "None"}),
        "pending-unknown-reason": live("PENDING", job_changes={"reason": "BrandNewReason"}),
        "pending-dependency": why_pending(
            "Dependency",
            "user",
            "Waits for other jobs.",
            "Look at the parent job.",
            dependency="afterok:4709(unfulfilled),afterany:4710(unfulfilled)",
        ),
        "pending-never-dependency": why_pending(
            "DependencyNeverSatisfied",
            "never",
            "The dependency can no longer be met.",
            "Cancel it, or change its dependency.",
            dependency="afterok:4709(failed)",
        ),
        "pending-held": why_pending("JobHeldUser", "held", "Held by its owner.", "Release it."),
        "pending-held-not-mine": facts(
            job=job("PENDING", reason="JobHeldUser"),
            reason=ReasonInfo("JobHeldUser", "held", "Held by its owner.", "Release it."),
            viewer="bob",
            viewer_uid=20012,
        ),
        "pending-held-admin": why_pending(
            "JobHeldAdmin", "held", "Held by an administrator.", "Only an operator can release it."
        ),
        "pending-limit": why_pending(
            "QOSMaxGRESPerUser",
            "limit",
            "Your running jobs hold all the GPUs you may have.",
            "Wait for your own jobs.",
            qos="normal",
        ),
        "pending-partition": why_pending(
            "PartitionTimeLimit",
            "limit",
            "The time limit is above that of the partition.",
            "Lower --time.",
        ),
        "pending-begin": why_pending(
            "BeginTime",
            "user",
            "Its begin time has not come.",
            "Wait.",
            start=NOW + HOUR,
        ),
        "pending-requeued": why_pending(
            "BeginTime",
            "user",
            "Its begin time has not come.",
            "Wait.",
            restarts=2,
            start=NOW + timedelta(seconds=95),
        ),
        "pending-detail": live(
            "PENDING",
            reason=ReasonInfo(
                "ReqNodeNotAvail",
                "site",
                "A node it must have is not available.",
                "",
                "UnavailableNodes:gpu[03-05]",
            ),
            job_changes={"reason": "ReqNodeNotAvail, UnavailableNodes:gpu[03-05]"},
        ),
        "configuring": live("CONFIGURING", job_changes={"start": NOW - timedelta(minutes=3)}),
        "running-step": live("RUNNING", logs=(log(progress=STEP),)),
        "running-no-step": live("RUNNING", logs=(log(),)),
        "running-quiet": live("RUNNING", logs=(log(quiet_s=1_400, progress=STEP),)),
        "running-error-and-steps": live(
            "RUNNING", logs=(log(progress=STEP), log("stderr", first_error=TRACE))
        ),
        "running-error-no-steps": live("RUNNING", logs=(log("stderr", first_error=TRACE),)),
        "running-error-after-steps": live(
            "RUNNING",
            logs=(log(progress=STEP, first_error=TRACE, late_error=WATCHDOG, last_line=WATCHDOG),),
        ),
        "running-no-log-yet": live(
            "RUNNING", logs=(log(status=LogStatus.ABSENT, mtime=None, last_line=None),)
        ),
        "running-log-denied": live(
            "RUNNING",
            logs=(log(status=LogStatus.DENIED, why="only anna may read it", mtime=None),),
            missing=(Missing("log", "only anna may read /scratch/anna/run9/4711.out"),),
        ),
        "running-old-log": live("RUNNING", logs=(log(quiet_s=4 * 3_600, progress=STEP),)),
        "completing": live("COMPLETING"),
        "completing-long": live("COMPLETING", job_changes={"end": NOW - HOUR}),
        "suspended": live("SUSPENDED"),
        "stopped": live("STOPPED"),
        "completed": live("COMPLETED"),
        "completed-step-failed": facts(
            history=(row("COMPLETED"), row("FAILED", step="0", exit_code=ExitCode(3, 0))),
            exit=ExitMeaning(True, "success", "self", "A step exited with 3."),
            **gone,
        ),
        "failed-exception": live(
            "FAILED",
            "1:0",
            logs=(log("stderr", 400, first_error=TRACE), log(progress=STEP)),
        ),
        "failed-no-log": live("FAILED", "1:0"),
        "failed-with-meaning": live(
            "FAILED",
            "127:0",
            exit=ExitMeaning(False, "Failed with exit code 127: a command was not found.", "self"),
        ),
        "completed-with-code": live(
            "COMPLETED",
            "3:0",
            exit=ExitMeaning(None, "Completed, says Slurm, but with exit code 3", "self"),
        ),
        "failed-launch": live(
            "FAILED",
            "0:53",
            job_changes={"reason": "JobLaunchFailure"},
            exit=ExitMeaning(
                False,
                "Slurm could not start it: the output file could not be created (/w/1.out).",
                "fault",
            ),
        ),
        "failed-cuda-oom": live(
            "FAILED",
            "1:0",
            logs=(
                log("stderr", 400, first_error=line("torch.OutOfMemoryError: CUDA out of memory.")),
            ),
        ),
        "logs-rank-threw": live(
            "FAILED",
            "1:0",
            logs=(log("stdout", 400, first_error=line("[rank2]: ValueError: no", 6)),),
            logs_say=say(RAISED),
        ),
        "logs-rank-crashed": live("FAILED", "139:0", logs_say=say(CRASHED)),
        "logs-rank-killed": live("FAILED", "137:0", logs_say=say(KILLED)),
        "logs-error-survived": live(
            "FAILED",
            "1:0",
            logs=(log("stdout", 400, first_error=line("ValueError: mirror", 3)),),
            logs_say=say(SURVIVED),
        ),
        "logs-time-limit-in-a-hang": live("TIMEOUT", "0:15", logs_say=say(TIMED_OUT + LIMIT)),
        "logs-running-watchdog": live(
            "RUNNING", logs=(log(progress=STEP),), logs_say=say(TIMED_OUT)
        ),
        "logs-running-stall": live("RUNNING", logs=(log(progress=STEP),), logs_say=say(STALL)),
        "cancelled-by-owner": facts(
            history=(row("CANCELLED", state=state("CANCELLED", 20011)),),
            viewer="anna",
            viewer_uid=20011,
            **gone,
        ),
        "cancelled-by-root": facts(
            history=(row("CANCELLED", state=state("CANCELLED", 0)),), **gone
        ),
        "cancelled-before-start": facts(
            history=(
                row("CANCELLED", state=state("CANCELLED", 20017), start=None, never_started=True),
            ),
            **gone,
        ),
        "cancelled-who-unknown": live("CANCELLED"),
        "time-limit": live("TIMEOUT", "0:15"),
        "out-of-memory": facts(
            history=(
                row("OUT_OF_MEMORY", exit_code=ExitCode(0, 125), req_mem_bytes=64 * 2**30),
                row("OUT_OF_MEMORY", step="0", max_rss_bytes=63 * 2**30),
            ),
            **gone,
        ),
        "node-fail": live("NODE_FAIL"),
        "node-fail-named": live(
            "NODE_FAIL",
            logs=(log("stderr", 400, slurm_line=line("srun: error: Node failure on gpu02", 88)),),
        ),
        "node-fail-single": live("NODE_FAIL", job_changes={"node_count": 1, "nodes": "gpu07"}),
        "preempted": live("PREEMPTED"),
        "deadline": live("DEADLINE"),
        "boot-fail": live("BOOT_FAIL"),
        "revoked": live("REVOKED"),
        "new-state": live("QUANTUM"),
        "array": facts(job=array[0], siblings=array, logs=(log(progress=STEP),)),
        "array-with-failures": facts(
            job=array[0],
            siblings=(*array[1:], job("FAILED", "4711_7", reason="NonZeroExitCode")),
            logs=(log(progress=STEP),),
        ),
        "het-pending": facts(job=job("PENDING", "4711+0"), siblings=(job("PENDING", "4711+1"),)),
        "pending-throttle": why_pending(
            "JobArrayTaskLimit", "user", "The throttle of the array.", "Raise it."
        ),
        "vanished": facts(history=(row("RUNNING"),), **gone),
        "vanished-lost-end": facts(
            history=(row("RUNNING", start=NOW - 50 * HOUR, elapsed_s=180_000),), **gone
        ),
        "unknown-everywhere": facts(**gone),
        "unknown-no-accounting": facts(accounting_answered=None),
        "controller-down": facts(
            controller_answered=False,
            accounting_answered=False,
            missing=(Missing("slurm", "the controller did not answer", "scontrol ping"),),
        ),
        "controller-down-accounting-knows": facts(
            controller_answered=False, history=(row("RUNNING"),), **gone
        ),
        "controller-down-log-moves": live(
            "RUNNING", controller_answered=False, logs=(log(progress=STEP),)
        ),
        "controller-down-last-known": live("RUNNING", controller_answered=False),
    }
