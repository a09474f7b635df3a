"""scancel: whom it ends, whom it may not, and how little it says."""

import re
from collections.abc import Iterable

from slurmtop.demo.answers_squeue import VERSION
from slurmtop.demo.find import find
from slurmtop.demo.jobs import USERS, DemoJob
from slurmtop.demo.nodes import CLUSTER
from slurmtop.demo.options import Answer, Options, Table, said
from slurmtop.demo.scheduler import schedule
from slurmtop.demo.signal_words import NAMES, NUMBERS
from slurmtop.demo.signals import send
from slurmtop.demo.text import parse_tasks
from slurmtop.demo.values import View, state_short, steps_of
from slurmtop.demo.world import KILL_DELAY_S

_OPTIONS = Table(
    "scancel",
    flags={
        "autocomplete": "", "batch": "b", "cron": "c", "ctld": "", "full": "f", "help": "",
        "hurry": "H", "interactive": "i", "me": "", "quiet": "Q", "usage": "", "verbose": "v",
        "version": "V",
    },
    values={
        "account": "A", "clusters": "M", "jobname": "n", "name": "", "nodelist": "w",
        "partition": "p", "qos": "q", "reservation": "R", "sibling": "S", "signal": "s",
        "state": "t", "user": "u", "wckey": "",
    },
)  # fmt: skip
_FILTERS = (
    "account", "jobname", "me", "name", "nodelist", "partition", "qos", "reservation", "state",
    "user", "wckey",
)  # fmt: skip
_INVALID = "Invalid job id specified"
_DENIED = "Access/permission denied"
_DONE = "Job/step already completing or completed"
_PART = "Operation not permitted on individual component of heterogeneous job"
_LATER = "Job can not be altered now, try again later"
LATER_S = 95
"""How long scancel tries again before it gives up on a job that waits."""
#: The exit status is the error number modulo 256.
_EXIT = {_INVALID: 225, _DENIED: 210, _DONE: 229, _PART: 60, _LATER: 228}
_WORD = re.compile(r"[0-9]{1,10}(?:_(?:[0-9]{1,7}|\*|\[[0-9,:%-]+\])|\+[0-9]{1,4})?", re.ASCII)


def answer(view: View, argv: tuple[str, ...]) -> Answer:
    """What scancel does and says for this command line."""
    options = _OPTIONS.parse(argv)
    if options.has("version"):
        return said(VERSION)
    if options.has("help") or options.has("usage"):
        return said("Usage: scancel [OPTIONS] [job_id[_array_id][.step_id]]\n")
    signal = _signal(options)
    if signal == "":
        return said(err=f"Unknown job signal: {options.get('signal')}\n", rc=1)
    filters = [name for name in _FILTERS if options.has(name)]
    if not options.words and not filters:
        return said(err="scancel: error: No job identification provided\n", rc=1)
    for word in options.words:
        if _WORD.fullmatch(word.partition(".")[0]) is None:
            return said(err=f"scancel: error: Invalid job id {word}\n", rc=1)
    clusters = options.get("clusters")
    if clusters is not None and clusters != CLUSTER:
        complaint = f"scancel: error: No cluster '{clusters}' known by database.\n"
        return said(err=complaint, rc=1)
    user = options.get("user")
    if user is not None and user not in USERS:
        return said(err=f"scancel: error: Invalid user name: {user}\n", rc=1)
    if options.has("interactive"):
        complaint = "scancel: error: this simulated cluster asks no questions\n"
        return said(err=complaint, rc=1)
    answer = _run(view, options, signal, filters)
    schedule(view.world)
    return answer


def _signal(options: Options) -> str | None:
    """None for the plain cancel, "" for a signal that does not exist."""
    given = options.get("signal")
    if given is None:
        return None
    name = given.upper().removeprefix("SIG")
    if name in NUMBERS:
        return name
    return NAMES.get(int(name), "") if re.fullmatch("[0-9]{1,3}", name, re.ASCII) else ""


def _run(view: View, options: Options, signal: str | None, filters: list[str]) -> Answer:
    direct = options.has("ctld") or options.has("clusters")
    table_first = not direct and (
        bool(filters or signal) or options.has("batch") or options.has("full")
    )
    lines: list[str] = []
    rc, waits_s = 0, 0
    for word in options.words or (None,):
        ids = word if word is not None else ""
        jobs = list(view.world.remembered()) if word is None else find(view, _job_part(ids)) or []
        if filters:
            jobs = [job for job in jobs if job.live and _wanted(view, job, options)]
        if options.has("verbose") and word is not None:
            lines.append(f"scancel: Terminating job {ids}")
        if word is not None and "." in ids:
            bad = _one_step(view, jobs, ids, signal)
        else:
            bad = [] if word is None else _refusals(view, jobs, ids, table_first)
            bad += [] if bad else _reach(view, jobs, ids, signal, options)
        for ident, text in bad:
            of_step = ident.startswith("step ")
            quiet = text in (_INVALID, _DONE) and not table_first and not of_step
            if not quiet or (options.has("verbose") and not direct):
                what = ident if of_step else f"id {ident}"
                lines.append(f"scancel: error: Kill job error on job {what}: {text}")
            if text == _LATER:
                waits_s = LATER_S
            if not quiet and (not direct or of_step or text == _LATER):
                rc = 1 if table_first and text == _INVALID and not of_step else _EXIT[text]
    return said(err="".join(f"{line}\n" for line in lines), rc=rc, waits_s=waits_s)


def _one_step(
    view: View, jobs: list[DemoJob], ids: str, signal: str | None
) -> list[tuple[str, str]]:
    """End or signal one step: ``4811.0``, or the batch shell as ``4811.batch``."""
    base, _, step = ids.partition(".")
    ident = f"step id {base}"
    if not all(view.mine(job) for job in jobs):
        return [(ident, _DENIED)]
    reached = [job for job in jobs if job.running and step in steps_of(job)]
    for job in reached:
        send(view, job, signal or "KILL", shell=step == "batch", steps=step != "batch")
    return [] if reached else [(ident, _INVALID)]


def _job_part(word: str) -> str:
    return word.partition(".")[0]


def _refusals(
    view: View, jobs: list[DemoJob], ids: str, table_first: bool
) -> list[tuple[str, str]]:
    alive = [job for job in jobs if job.pending or job.running]
    if not jobs or (table_first and not alive):
        return [(ids, _INVALID)]
    if not all(view.mine(job) for job in jobs):
        return [(ids, _DENIED)]
    if not alive:
        return [(ids, _DONE)]
    first = jobs[0]
    if first.het_ids and ids not in (str(first.het_id),) and alive[0].pending:
        return [(str(alive[0].id), _PART)]
    return []


def _wanted(view: View, job: DemoJob, options: Options) -> bool:
    user = options.get("user")
    state = options.get("state")
    tests = (
        not options.has("me") or view.mine(job),
        user is None or job.spec.user == user,
        state is None or state.upper() in (job.state, state_short(job)),
        options.get("partition") in (None, job.spec.partition),
        options.get("account") in (None, job.spec.account),
        options.get("qos") in (None, job.spec.qos),
        options.get("jobname") in (None, job.spec.name),
        options.get("name") in (None, job.spec.name),
        options.get("nodelist") is None or options.get("nodelist") in job.nodes,
        not options.has("reservation") and not options.has("wckey"),
    )
    return all(tests)


def _reach(
    view: View, jobs: list[DemoJob], ids: str, signal: str | None, options: Options
) -> list[tuple[str, str]]:
    bad: list[tuple[str, str]] = []
    full = options.has("full")
    batch = options.has("batch") and not full
    cancels = signal in (None, "KILL") and not batch
    for job in jobs:
        if not view.mine(job):
            bad.append((str(job.id), _DENIED))
        elif cancels:
            cancel(view, job, _tasks_in(ids))
        elif job.running:
            send(view, job, signal or "KILL", shell=batch or full, steps=not batch)
        elif job.pending:
            bad.append((str(job.id), _LATER))
    return bad


def _tasks_in(ids: str) -> list[int] | None:
    """The tasks that the id names; None where it names the whole job."""
    tasks = ids.partition("_")[2]
    return None if tasks in ("", "*") else parse_tasks(tasks.strip("[]"))


def cancel(view: View, job: DemoJob, tasks: Iterable[int] | None) -> None:
    """End the job: at once while it waits, else when the signal has arrived."""
    if job.pending and job.tasks is not None and tasks is not None:
        view.world.drop_tasks(job, tasks, view.uid)
    elif job.pending:
        view.world.drop(job, view.uid)
    elif job.running:
        view.world.at(view.t + KILL_DELAY_S, "kill", job, view.uid)
