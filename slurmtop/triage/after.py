"""The commands to run once a job has ended badly."""

import shlex

from slurmtop.model.facts import LogFacts, LogLine
from slurmtop.model.job import JobState
from slurmtop.model.verdict import Culprit, NextStep
from slurmtop.triage.subject import Subject, read_log_step


def steps_after(
    subject: Subject,
    state: JobState,
    logs: tuple[LogFacts, ...],
    error: tuple[LogFacts, LogLine] | None,
    launch: bool,
    culprits: tuple[Culprit, ...],
) -> tuple[NextStep, ...]:
    """What a person does next, safest first. ``error`` is a line that is the job's own.

    ``launch`` means that Slurm could not start it, so that there is no log to read.
    """
    steps: list[NextStep] = []
    log = read_log_step(*error) if error is not None else None
    if log is None and logs:
        log = read_log_step(logs[0], None)
    in_memory = subject.job is not None
    if state.base in ("NODE_FAIL", "BOOT_FAIL"):
        steps.extend(_node_steps(subject, culprits))
    if launch and in_memory:
        why = "output file, work directory and command as Slurm saw them"
        steps.append(NextStep("see its paths", subject.show_job(), "read", why))
    elif log is not None:
        steps.append(log)
    if subject.facts.accounting_answered is not False:
        steps.append(NextStep("see its steps", subject.sacct(), "read", "exit codes and memory"))
    if in_memory and not launch:
        steps.append(NextStep("see all that Slurm knows", subject.show_job(), "read", ""))
    detail = subject.detail
    may_rerun = detail is not None and detail.requeueable is True and detail.batch is not False
    if may_rerun and state.base in ("TIMEOUT", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL"):
        command = subject.command("scontrol", f"requeue {subject.id}")
        why = "same id, runs from the start of its script; its log may be overwritten"
        steps.append(subject.write("run it again", command, why))
    return tuple(steps)


def steps_while_hung(subject: Subject) -> tuple[NextStep, ...]:
    """What ends a job that will not go on by itself, the one that runs it again first."""
    detail = subject.detail
    steps = []
    if detail is not None and detail.requeueable is True and detail.batch is not False:
        why = "same id, runs from the start of its script; stacks and GPU state are gone then"
        command = subject.command("scontrol", f"requeue {subject.id}")
        steps.append(subject.write("run it again", command, why))
    why = "its GPUs are held for nothing; stacks and GPU state are gone then"
    steps.append(subject.write("end it", subject.command("scancel", subject.id), why))
    return tuple(steps)


def _node_steps(subject: Subject, culprits: tuple[Culprit, ...]) -> list[NextStep]:
    if culprits and culprits[0].host is not None:
        host = shlex.quote(culprits[0].host)
        command = subject.command("scontrol", f"show node {host}")
        return [NextStep("see that node", command, "read", "its state and the reason for it")]
    nodes = subject.job.nodes if subject.job is not None else None
    if nodes is None and subject.record is not None:
        nodes = subject.record.nodes
    if not nodes or not nodes.isprintable():
        return []
    command = subject.command("sinfo", f"-N -l -n {shlex.quote(nodes)}")
    return [NextStep("see its nodes", command, "read", "which one is down, and why")]
