"""scontrol: hold, release, requeue and update, with the refusals of the real one."""

import re
from collections.abc import Callable
from dataclasses import replace

from slurmtop.demo.find import find
from slurmtop.demo.jobs import DemoJob
from slurmtop.demo.nodes import MAX_TIME_S, NODE_NAMES
from slurmtop.demo.options import Answer, said
from slurmtop.demo.scheduler import schedule
from slurmtop.demo.text import expand_hosts, task_rows
from slurmtop.demo.values import View

_OK = "No error"
_NO_ID = "Invalid job id specified"
_NOT_MINE = "Invalid user id"
_DENIED = "Access/permission denied"
_FINISHED = "Job has already finished"
_DISABLED = "Requested operation is presently disabled"
_BAD_TIME = "Requested time limit is invalid (missing or exceeds some limit)"
_TIME = re.compile(r"(?:([0-9]{1,4})-)?([0-9]{1,6})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?", re.ASCII)
#: Parameters of a job that the real one can update.
_KNOWN_KEYS = frozenset(
    {
        "account", "arraytaskthrottle", "comment", "dependency", "excnodelist", "features", "gres",
        "jobid", "jobname", "licenses", "minmemorynode", "name", "nice", "nodelist", "numcpus",
        "numnodes", "numtasks", "partition", "priority", "qos", "reqnodelist", "requeue",
        "reservationname", "starttime", "timelimit", "wckey", "workdir",
    }
)  # fmt: skip


def do(view: View, verb: str, words: tuple[str, ...]) -> Answer:
    """Carry out one of :data:`VERBS`; ``words`` are what follows it."""
    if verb == "update":
        return _update(view, words)
    lines: list[str] = []
    failed = False
    for text in (name for word in words for name in _split(word)):
        complaint = _one(view, verb, text)
        lines.extend(complaint)
        failed = failed or bool(complaint)
    schedule(view.world)
    return said(err="".join(f"{line}\n" for line in lines), rc=int(failed))


def _split(text: str) -> list[str]:
    """Ids between commas; those in a task list part nothing."""
    return [name for name in re.split(r",(?![^\[]*\])", text) if name]


def _one(view: View, verb: str, text: str) -> list[str]:
    """The complaints about one id; none where all went well."""
    act, wrong_owner, tail = VERBS[verb]
    jobs = find(view, text)
    if not jobs:
        if "_" in text and find(view, text.partition("_")[0]):
            return [f"{text}: {_NO_ID}"]
        return _complain(_NO_ID, text, tail)
    if not all(view.mine(job) for job in jobs):
        return _complain(wrong_owner, text, tail)
    if jobs[0].array_id is not None:
        return _array(view, act, jobs, text)
    if jobs[0].het_ids:
        leader = view.world.jobs[jobs[0].het_ids[0]]
        if verb.startswith("requeue") and not any(job is leader for job in jobs):
            return _complain("Job not heterogeneous job leader", text, tail)
        jobs = view.world.parts_of(leader)
    said_of = [act(view, job) for job in jobs]
    bad = [word for word in said_of if word != _OK]
    return _complain(bad[0], text, tail) if bad else []


def _complain(word: str, text: str, tail: bool) -> list[str]:
    return [f"{word} for job {text}", *([f"slurm_suspend error: {word}"] if tail else [])]


def _array(
    view: View, act: Callable[[View, DemoJob], str], jobs: list[DemoJob], text: str
) -> list[str]:
    words: dict[int, str] = {}
    for job in jobs:
        word = act(view, job)
        words.update(dict.fromkeys(job.tasks or (job.task or 0,), word))
    if all(word == _OK for word in words.values()):
        return []
    base = jobs[0].array_id
    return [f"{base}_{tasks}: {word}" for tasks, word in task_rows(words, words)]


def _hold(view: View, job: DemoJob) -> str:
    if not (job.pending or job.running):
        return _FINISHED
    job.held = True
    view.world.give_up_nodes(job)
    view.world.set_priority(job, 0)
    job.reason = "JobHeldUser"
    return _OK


def _release(view: View, job: DemoJob) -> str:
    if not (job.pending or job.running):
        return _FINISHED
    if job.held:
        job.held = job.requeue_held = False
        view.world.set_priority(job, job.normal_priority)
        job.reason = "None"
    return _OK


def _requeue(view: View, job: DemoJob) -> str:
    return _send_back(view, job, held=False)


def _requeue_hold(view: View, job: DemoJob) -> str:
    return _send_back(view, job, held=True)


def _send_back(view: View, job: DemoJob, *, held: bool) -> str:
    if not job.spec.requeue:
        return _DISABLED
    if job.pending:
        return "Job is pending execution"
    if not job.started:
        return _FINISHED
    view.world.send_back(job, held=held)
    return _OK


def _denied(view: View, job: DemoJob) -> str:
    return _DENIED


#: What is done, what is said to somebody who does not own the job, and whether the line with
#: the wrong name of the call follows.
VERBS: dict[str, tuple[Callable[[View, DemoJob], str], str, bool]] = {
    "hold": (_hold, _NOT_MINE, True),
    "release": (_release, _NOT_MINE, True),
    "requeue": (_requeue, _DENIED, False),
    "requeuehold": (_requeue_hold, _DENIED, False),
    "resume": (_denied, _DENIED, False),
    "suspend": (_denied, _DENIED, False),
    "top": (_denied, _DENIED, False),
    "uhold": (_denied, _NOT_MINE, True),
    "update": (_denied, _NOT_MINE, False),
}


def _update(view: View, words: tuple[str, ...]) -> Answer:
    pairs = [(word.partition("=")[0].lower(), word.partition("=")[2], word) for word in words]
    names = {name for name, _, _ in pairs}
    if names & {"nodename", "partitionname", "reservation", "slurmctlddebug"}:
        return said(err="slurm_update error: Invalid user id\n", rc=1)
    ids = [value for name, value, _ in pairs if name in ("jobid", "job")]
    if not ids:
        return said(
            err="No valid entity in update command\n"
            'Input line must include "NodeName", "PartitionName", "Reservation", "JobId",'
            ' or "SlurmctldDebug"\n',
            rc=1,
        )
    changes = [(name, value) for name, value, _ in pairs if name not in ("jobid", "job")]
    for name, _, word in pairs:
        if name not in _KNOWN_KEYS | {"job"}:
            complaint = f"Update of this parameter is not supported: {word}\nRequest aborted\n"
            return said(err=complaint, rc=1)
    lines = [line for text in _split(ids[0]) for line in _update_one(view, text, changes)]
    schedule(view.world)
    return said(err="".join(f"{line}\n" for line in lines), rc=int(bool(lines)))


def _update_one(view: View, text: str, changes: list[tuple[str, str]]) -> list[str]:
    jobs = find(view, text)
    if not jobs:
        return [f"{_NO_ID} for job {text}"]
    if not all(view.mine(job) for job in jobs):
        return [f"{_NOT_MINE} for job {text}"]
    if jobs[0].array_id is not None:
        return _array(view, lambda view, job: _change_all(view, job, changes), jobs, text)
    words = [_change_all(view, job, changes) for job in jobs]
    bad = [word for word in words if word != _OK]
    return [f"{bad[0]} for job {text}"] if bad else []


def _change_all(view: View, job: DemoJob, changes: list[tuple[str, str]]) -> str:
    for name, value in changes:
        word = _change(view, job, name, value)
        if word != _OK:
            return word
    return _OK


def _change(view: View, job: DemoJob, name: str, value: str) -> str:
    if not (job.pending or job.running):
        return _FINISHED
    if name == "excnodelist":
        if not job.pending:
            return "Job is no longer pending execution"
        nodes = expand_hosts(value)
        if any(name not in NODE_NAMES for name in nodes):
            return "Invalid node name specified"
        job.exc_nodes = tuple(dict.fromkeys(nodes))
    elif name == "timelimit":
        return _change_limit(view, job, value)
    elif name == "comment":
        job.spec = replace(job.spec, comment=value)
    elif name == "arraytaskthrottle" and job.tasks is not None and value.isdecimal():
        job.spec = replace(job.spec, throttle=int(value[:6]) or None)
    else:
        return _DISABLED
    return _OK


def _change_limit(view: View, job: DemoJob, value: str) -> str:
    match = _TIME.fullmatch(value)
    if match is None:
        return _BAD_TIME
    days, first, second, third = (int(group) if group else None for group in match.groups())
    if days is not None:
        seconds = days * 86_400 + (first or 0) * 3_600 + (second or 0) * 60 + (third or 0)
    elif third is not None:
        seconds = (first or 0) * 3_600 + (second or 0) * 60 + third
    else:
        seconds = (first or 0) * 60 + (second or 0)
    if not 0 < seconds <= MAX_TIME_S[job.spec.partition]:
        return _BAD_TIME
    if seconds > job.limit_s:
        return _DENIED
    view.world.set_limit(job, seconds)
    return _OK
