"""sacct: what has become of jobs, also of those that the controller has forgotten."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from slurmtop.demo.answers_squeue import VERSION
from slurmtop.demo.jobs import USERS, DemoJob, Run
from slurmtop.demo.nodes import CLUSTER
from slurmtop.demo.options import Answer, Misused, Options, Table, said
from slurmtop.demo.sacct_fields import NAMES, Row, Value, find_field
from slurmtop.demo.text import cut_bytes, parse_tasks
from slurmtop.demo.values import View, steps_of

_OPTIONS = Table(
    "sacct",
    flags={
        "allclusters": "L", "allocations": "X", "allusers": "a", "array": "", "brief": "b",
        "completion": "c", "duplicates": "D", "federation": "", "help": "", "helpformat": "e",
        "local": "", "long": "l", "me": "", "noconvert": "", "noheader": "n", "parsable": "p",
        "parsable2": "P", "truncate": "T", "usage": "", "verbose": "v", "version": "V",
    },
    values={
        "accounts": "A", "cluster": "", "clusters": "M", "constraints": "C", "delimiter": "",
        "endtime": "E", "flags": "F", "format": "o", "group": "g", "jobs": "j", "name": "",
        "ncpus": "I", "nnodes": "i", "nodelist": "N", "partition": "r", "qos": "q", "state": "s",
        "starttime": "S", "timelimit-max": "k", "timelimit-min": "K", "uid": "u", "units": "",
        "user": "", "wckeys": "W",
    },
    hint=False,
)  # fmt: skip
_DEFAULT = "jobid,jobname,partition,account,alloccpus,state,exitcode"
_BRIEF = "jobid,state,exitcode"
_STATES = {
    "PD": "PENDING", "R": "RUNNING", "S": "SUSPENDED", "CD": "COMPLETED", "CA": "CANCELLED",
    "F": "FAILED", "TO": "TIMEOUT", "NF": "NODE_FAIL", "PR": "PREEMPTED", "BF": "BOOT_FAIL",
    "DL": "DEADLINE", "OOM": "OUT_OF_MEMORY", "RQ": "REQUEUED", "RS": "RESIZING", "RV": "REVOKED",
}  # fmt: skip
_UNITS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_RELATIVE = re.compile(r"now(?:([+-])([0-9]{1,9})([a-z]*))?", re.ASCII)
_FIELD = re.compile(r"([A-Za-z]+)(?:%(-?[0-9]{1,4}))?", re.ASCII)
_JOB = re.compile(
    r"([0-9]{1,10})(?:_([0-9]{1,7}|\[[0-9,:%-]+\])|\+([0-9]{1,4}))?(?:\.(\w{1,20}))?", re.ASCII
)
_STEP_STATE = {"TIMEOUT": "CANCELLED", "NODE_FAIL": "CANCELLED", "REQUEUED": "CANCELLED"}

Column = tuple[str, int, Value]


def answer(view: View, argv: tuple[str, ...]) -> Answer:
    """What sacct prints for this command line."""
    options = _OPTIONS.parse(argv)
    if options.has("version"):
        return said(VERSION)
    if options.has("help") or options.has("usage"):
        return said("sacct [<OPTION>]\n")
    if options.has("helpformat"):
        table = [NAMES[at : at + 4] for at in range(0, len(NAMES), 4)]
        return said("".join("".join(f"{one:<20}" for one in row).rstrip() + "\n" for row in table))
    columns = _columns(options)
    rows = [row for job in _chosen(view, options) for row in _rows(job, options)]
    rows = _in_window(view, rows, options)
    lines: list[str] = []
    if not options.has("noheader"):
        lines.append(_line([name for name, _, _ in columns], columns, options))
        if not (options.has("parsable") or options.has("parsable2")):
            lines.append("".join("-" * abs(width) + " " for _, width, _ in columns))
    for row in rows:
        cells = [value(view, row) for _, _, value in columns]
        lines.append(_line(cells, columns, options))
    return said("".join(f"{line}\n" for line in lines), took_s=0.12 + 2e-5 * len(rows))


def _columns(options: Options) -> list[Column]:
    text = options.get("format")
    if text is None:
        text = _BRIEF if options.has("brief") else _DEFAULT
    columns: list[Column] = []
    for word in text.split(","):
        if not word:
            continue
        match = _FIELD.fullmatch(word)
        known = find_field(match[1]) if match else None
        if known is None or match is None:
            raise Misused(said(err=f'sacct: error: Invalid field requested: "{word}"\n', rc=1))
        width = int(match[2]) if match[2] else known[1]
        columns.append((known[0], width, known[2]))
    return columns


def _line(cells: list[str], columns: list[Column], options: Options) -> str:
    if options.has("parsable") or options.has("parsable2"):
        delimiter = options.get("delimiter")
        delimiter = "|" if delimiter is None else delimiter
        return delimiter.join(cells) + (delimiter if options.has("parsable") else "")
    out = []
    for cell, (_, width, _) in zip(cells, columns, strict=True):
        size = abs(width)
        if len(cell.encode("utf-8", "surrogateescape")) > size:
            cell = cut_bytes(cell, max(0, size - 1)) + "+" * min(1, size)
        out.append(f"{cell:<{size}} " if width < 0 else f"{cell:>{size}} ")
    return "".join(out)


def _chosen(view: View, options: Options) -> Iterator[DemoJob]:
    jobs: list[DemoJob] = sorted(view.world.jobs.values(), key=lambda job: job.id)
    words = options.get("jobs")
    everybody = options.has("allusers") or words is not None
    names = options.get("uid") or options.get("user")
    uids = None if everybody else {view.uid}
    if names:
        uids = _uids(names)
    clusters = options.get("clusters") or options.get("cluster")
    if clusters not in (None, CLUSTER):
        return iter(())
    if words is not None:
        wanted = [_job_match(word) for word in words.split(",") if word]
        jobs = [job for job in jobs if any(_is(job, match) for match in wanted)]
    account, partition = options.get("accounts"), options.get("partition")
    name, node = options.get("name"), options.get("nodelist")
    return (
        job
        for job in jobs
        if (uids is None or job.spec.uid in uids)
        and (account is None or job.spec.account in account.split(","))
        and (partition is None or job.spec.partition in partition.split(","))
        and (name is None or job.spec.name in name.split(","))
        and (node is None or any(node in run.nodes for run in job.runs))
    )


def _uids(names: str) -> set[int]:
    uids: set[int] = set()
    for name in names.split(","):
        if name in USERS:
            uids.add(USERS[name][0])
        elif name.isdecimal() and len(name) < 11:
            uids.add(int(name))
        elif name:
            raise Misused(said(err=f"sacct: error: Invalid user id: {name}\n", rc=1))
    return uids


def _job_match(word: str) -> re.Match[str]:
    match = _JOB.fullmatch(word.strip())
    if match is None:
        raise Misused(said(err=f"sacct: fatal: Bad job/step specified: {word}\n", rc=1))
    return match


def _is(job: DemoJob, match: re.Match[str]) -> bool:
    number = int(match[1])
    if match[3] is not None:
        return job.het_id == number and job.het_offset == int(match[3])
    if match[2] is not None:
        wanted = parse_tasks(match[2].strip("[]")) or []
        rest = not set(wanted).isdisjoint(job.tasks or ())
        return job.array_id == number and (job.task in wanted or rest)
    return number in (job.id, job.array_id, job.het_id)


def _rows(job: DemoJob, options: Options) -> Iterator[Row]:
    """Every run of the job with its steps; without ``-D`` the newest attempt alone."""
    attempts: list[Run | None] = list(job.runs)
    if not job.started:
        attempts.append(None)
    if not options.has("duplicates"):
        attempts = attempts[-1:]
    for run in attempts:
        yield from _attempt(job, run, steps=not options.has("allocations"))


def _attempt(job: DemoJob, run: Run | None, *, steps: bool) -> Iterator[Row]:
    if run is None:
        yield Row(job, None, "", job.state, job.submit_t, job.end_t, job.exit, job.by_uid)
        return
    state = run.state or "RUNNING"
    code = (0, 0) if state == "TIMEOUT" else run.exit
    shown, end_t = state, run.end_t
    if run.requeued_t is not None:
        shown, end_t = "REQUEUED", run.requeued_t
    yield Row(job, run, "", shown, run.submit_t, end_t, code, run.by_uid)
    if not steps:
        return
    for name in sorted(steps_of(job), reverse=True):
        step_state, step_code = _step_end(run, state, name)
        yield Row(job, run, name, step_state, run.submit_t, run.end_t, step_code, None)


def _step_end(run: Run, state: str, name: str) -> tuple[str, tuple[int, int]]:
    """State and exit of a step, from how the run ended."""
    code, signal = run.exit
    if run.step_exit is not None and name != "batch":
        return "FAILED", run.step_exit
    if state == "FAILED" and signal:
        return "CANCELLED", (0, signal if name == "batch" else 15)
    if state == "FAILED" and code > 128 and name != "batch":
        return "CANCELLED", (0, code - 128)
    state = _STEP_STATE.get(state, state)
    return state, (0, 15) if state == "CANCELLED" else run.exit


def _in_window(view: View, rows: list[Row], options: Options) -> list[Row]:
    """Jobs that were in the system between the two times, and their steps."""
    now = view.when(view.t)
    default = now.replace(hour=0, minute=0, second=0, microsecond=0)
    start_text, end_text = options.get("starttime"), options.get("endtime")
    start = _moment(start_text, now) if start_text is not None else default
    if start_text is None and options.has("jobs"):
        start = datetime(1970, 1, 1, tzinfo=UTC)
    end = _moment(end_text, now) if end_text is not None else now
    states = _states(options.get("state"))
    out = []
    keep = False
    for row in rows:
        if row.is_job:
            began, ended = view.when(row.submit_t), row.end_t
            inside = began <= end and (ended is None or view.when(ended) >= start)
            keep = inside and (states is None or row.state in states)
        if keep:
            out.append(row)
    return out


def _states(text: str | None) -> set[str] | None:
    if text is None:
        return None
    states: set[str] = set()
    for word in text.split(","):
        upper = word.upper()
        long = _STATES.get(upper, upper)
        if long not in _STATES.values():
            complaint = f"sacct: fatal: unrecognized job state value '{word}'\n"
            raise Misused(said(err=complaint, rc=1))
        states.add(long)
    return states


def _moment(text: str, now: datetime) -> datetime:
    """``now-1hour``, ``today``, ``2026-11-30``, ``2026-11-30T04:34:20``, ``04:34``."""
    lower = text.strip().lower()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if lower in ("today", "midnight"):
        return midnight
    if lower in ("tomorrow", "yesterday"):
        return midnight + timedelta(days=1 if lower == "tomorrow" else -1)
    relative = _RELATIVE.fullmatch(lower)
    try:
        if relative is not None:
            if relative[2] is None:
                return now
            unit = next((_UNITS[u] for u in _UNITS if u.startswith(relative[3].rstrip("s"))), 1)
            seconds = int(relative[2]) * (unit if relative[3] else 1)
            return now + timedelta(seconds=seconds if relative[1] == "+" else -seconds)
        if re.fullmatch(r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?", lower, re.ASCII):
            hours, minutes, *rest = (int(part) for part in lower.split(":"))
            return midnight + timedelta(hours=hours, minutes=minutes, seconds=sum(rest))
        return datetime.fromisoformat(text.strip().upper()).replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        complaint = f"Invalid time specification (pos=0): {text}\n"
        raise Misused(said(err=complaint, rc=1)) from None
