"""squeue: which jobs were asked for, in which form."""

import re
from collections.abc import Callable, Iterable, Iterator

from slurmtop.demo import answers_steps
from slurmtop.demo.jobs import USERS, DemoJob
from slurmtop.demo.nodes import CLUSTER, NODE_NAMES
from slurmtop.demo.options import Answer, Misused, Options, Table, said
from slurmtop.demo.squeue_columns import Column, cells, letter_columns, long_columns
from slurmtop.demo.squeue_fields import BY_LETTER, BY_NAME, Value
from slurmtop.demo.values import View, state_word

VERSION = "slurm-wlm 24.11.5\n"
_OPTIONS = Table(
    "squeue",
    flags={
        "all": "a", "array": "r", "array-unique": "", "federation": "", "help": "", "hide": "",
        "local": "", "long": "l", "me": "", "noheader": "h", "only-job-state": "",
        "priority": "P", "sibling": "", "start": "", "usage": "", "verbose": "v", "version": "V",
    },
    values={
        "account": "A", "clusters": "M", "format": "o", "Format": "O", "iterate": "i",
        "jobs": "j", "licenses": "L", "name": "n", "nodelist": "w", "partition": "p", "qos": "q",
        "reservation": "R", "sort": "S", "states": "t", "steps": "s", "user": "u",
    },
)  # fmt: skip
_DEFAULT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
_LONG = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
_START = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
_STATES = (
    "PENDING,RUNNING,SUSPENDED,COMPLETED,CANCELLED,FAILED,TIMEOUT,NODE_FAIL,PREEMPTED,BOOT_FAIL,"
    "DEADLINE,OUT_OF_MEMORY,COMPLETING,CONFIGURING,RESIZING,RESV_DEL_HOLD,REQUEUED,REQUEUE_FED,"
    "REQUEUE_HOLD,REVOKED,SIGNALING,SPECIAL_EXIT,STAGE_OUT,STOPPED"
)
_SHORT_STATES = {
    "PD": "PENDING", "R": "RUNNING", "S": "SUSPENDED", "CD": "COMPLETED", "CA": "CANCELLED",
    "F": "FAILED", "TO": "TIMEOUT", "NF": "NODE_FAIL", "PR": "PREEMPTED", "BF": "BOOT_FAIL",
    "DL": "DEADLINE", "OOM": "OUT_OF_MEMORY", "CG": "COMPLETING", "CF": "CONFIGURING",
    "RS": "RESIZING", "RQ": "REQUEUED", "SE": "SPECIAL_EXIT", "SO": "STAGE_OUT", "ST": "STOPPED",
}  # fmt: skip
_KEPT_FORMATS = 4


def answer(view: View, argv: tuple[str, ...]) -> Answer:
    """What squeue prints for this command line."""
    options = _OPTIONS.parse(_steps_spelled_out(argv))
    if options.has("version"):
        return said(VERSION)
    if options.has("help") or options.has("usage"):
        return said("Usage: squeue [OPTIONS]\n")
    if options.words:
        complaint = f"squeue: error: Unrecognized option: {options.words[0]}\n"
        return said("Usage: squeue [OPTIONS]\n", complaint, 1)
    if options.has("steps"):
        return answers_steps.answer(view, options, _steps_test(view, options))
    errors: list[str] = []
    lead, columns = _columns(options, errors)
    jobs = _chosen(view, options, errors)
    rows = [one for job in jobs for one in _rows(job, options)]
    _sort(view, rows, options)
    lines: list[str] = []
    if options.has("clusters") and not options.has("noheader"):
        lines.append(f"CLUSTER: {CLUSTER}")
    if options.has("long") and not options.has("noheader"):
        lines.append(view.when(view.t).strftime("%a %b %d %H:%M:%S %Y"))
    if not options.has("noheader"):
        lines.append(lead + "".join(column.cell(column.heading) for column in columns))
    lines.extend(_lines(view, rows, lead, columns, options))
    out = "".join(f"{line}\n" for line in lines)
    return said(out, "".join(errors), took_s=0.04 + 15e-6 * len(rows))


def _steps_spelled_out(argv: tuple[str, ...]) -> list[str]:
    """``-s`` takes a list only where it is glued to it."""
    out: list[str] = []
    for word in argv:
        if word == "--steps" or re.fullmatch(r"-[arhlPv]*s", word):
            if len(word) > 2 and word != "--steps":
                out.append(word[:-1])
            word = "--steps="
        out.append(word)
    return out


def _steps_test(view: View, options: Options) -> Callable[[DemoJob], bool]:
    """Of jobs that were asked for. Here an id that nobody knows is no error."""
    uids = _uids(view, options, [])
    words = options.get("jobs")
    ids = None if words is None else _ids(words)
    return lambda job: (
        (uids is None or job.spec.uid in uids)
        and (ids is None or any(_is(job, base, task) for base, task in ids))
    )


def _lines(
    view: View, rows: list[DemoJob], lead: str, columns: list[Column[DemoJob]], options: Options
) -> Iterator[str]:
    """One line a row. What waits rarely changes, so its line is kept from call to call."""
    text = "\0".join(str(options.get(name)) for name in ("Format", "format", "long", "start"))
    if text not in view.memo and len(view.memo) >= _KEPT_FORMATS:
        view.memo.clear()
    kept = view.memo.setdefault(text, {})
    ticking = any(column.value is BY_NAME["pendingtime"][1] for column in columns)
    for job in rows:
        if ticking or not job.pending or job.tasks is not None or job.spec.depends_on:
            yield lead + cells(view, job, columns)
            continue
        now = (
            (job.moves, job.completing, job.reason, job.expected_t, job.eligible_t),
            (job.priority, job.limit_s, job.exc_nodes, job.spec, job.task),
        )
        before = kept.get(job.id)
        if before is None or before[0] != now:
            before = kept[job.id] = (now, lead + cells(view, job, columns))
        yield before[1]


def _columns(options: Options, errors: list[str]) -> tuple[str, list[Column[DemoJob]]]:
    long_format = options.get("Format")
    if long_format is not None:
        return "", long_columns(long_format, BY_NAME, "job", errors)
    default = _START if options.has("start") else _LONG if options.has("long") else _DEFAULT
    text = options.get("format")
    return letter_columns(default if text is None else text, BY_LETTER, "job", errors)


def _chosen(view: View, options: Options, errors: list[str]) -> list[DemoJob]:
    jobs = list(view.world.remembered())
    tests: list[Callable[[DemoJob], bool]] = [_state_test(options)]
    clusters = options.get("clusters")
    if clusters is not None and clusters not in (CLUSTER, "all"):
        raise Misused(
            said(
                err=f"squeue: error: No cluster '{clusters}' known by database.\n"
                f"squeue: error: '{clusters}' can't be reached now, or it is an invalid entry for "
                "--cluster.  Use 'sacctmgr list clusters' to see available clusters.\n",
                rc=1,
            )
        )
    if options.has("jobs"):
        tests.append(_id_test(view, jobs, options.get("jobs") or ""))
    uids = _uids(view, options, errors)
    if uids is not None:
        tests.append(lambda job: job.spec.uid in uids)
    for name, value in (
        ("partition", lambda job: job.spec.partition),
        ("account", lambda job: job.spec.account),
        ("name", lambda job: job.spec.name),
        ("qos", lambda job: job.spec.qos),
    ):
        words = options.get(name)
        if words is not None:
            tests.append(_word_test(value, words))
    nodes = options.get("nodelist")
    if nodes is not None:
        if nodes not in NODE_NAMES:
            raise Misused(said(err=f"squeue: error: Invalid node name {nodes}\n", rc=1))
        tests.append(lambda job: nodes in job.nodes)
    if options.has("reservation") or options.has("licenses"):
        return []
    return [job for job in jobs if all(test(job) for test in tests)]


def _word_test(value: Callable[[DemoJob], str], words: str) -> Callable[[DemoJob], bool]:
    wanted = set(words.split(","))
    return lambda job: value(job) in wanted


def _state_test(options: Options) -> Callable[[DemoJob], bool]:
    text = options.get("states")
    if text is None:
        if options.has("start"):
            return lambda job: job.pending
        return lambda job: job.live
    if text.lower() == "all":
        return lambda job: True
    wanted: set[str] = set()
    for word in text.split(","):
        upper = word.upper()
        long = _SHORT_STATES.get(upper, upper)
        if long not in _STATES.split(","):
            raise Misused(
                said(
                    err=f"squeue: error: Invalid job state specified: {word}\n"
                    f"squeue: error: Valid job states include: {_STATES}\n\n",
                    rc=1,
                )
            )
        wanted.add(long)
    return lambda job: job.state in wanted or (job.completing and "COMPLETING" in wanted)


def _uids(view: View, options: Options, errors: list[str]) -> set[int] | None:
    text = options.get("user")
    if text is None:
        return {view.uid} if options.has("me") else None
    uids: set[int] = {view.uid} if options.has("me") else set()
    known = {str(uid): uid for uid, _, _ in USERS.values()}
    known |= {name: uid for name, (uid, _, _) in USERS.items()}
    for name in text.split(","):
        if name in known:
            uids.add(known[name])
        elif name:
            errors.append(f"squeue: error: Invalid user: {name}\n\n")
    return uids


def _ids(text: str) -> list[tuple[int, int | None]]:
    wanted: list[tuple[int, int | None]] = []
    for word in (word for word in text.split(",") if word):
        match = re.match(r"\s*([0-9]{1,10})(?:_([0-9]{0,10}))?", word, re.ASCII)
        if match is None or int(match[1]) == 0:
            raise Misused(said(err=f"squeue: error: Invalid job id: {word}\n", rc=1))
        # A list in brackets reads as task 0, as with the real one.
        wanted.append((int(match[1]), None if match[2] is None else int(match[2] or 0)))
    return wanted


def _id_test(view: View, jobs: list[DemoJob], text: str) -> Callable[[DemoJob], bool]:
    wanted = _ids(text)

    def named(job: DemoJob) -> bool:
        return any(_is(job, base, task) for base, task in wanted)

    if len(wanted) == 1 and not any(named(job) for job in jobs):
        raise Misused(said(err="slurm_load_jobs error: Invalid job id specified\n", rc=1))
    return named


def _is(job: DemoJob, base: int, task: int | None) -> bool:
    if base not in (job.id, job.array_id, job.het_id):
        return False
    return task is None or job.task == task or (job.tasks is not None and task in job.tasks)


def _rows(job: DemoJob, options: Options) -> list[DemoJob]:
    """The record itself, or with ``-r`` one for each waiting task."""
    expand = options.has("array") or options.has("array-unique")
    return [job] if job.tasks is None or not expand else list(_each_task(job, job.tasks))


def _each_task(job: DemoJob, tasks: list[int]) -> Iterable[DemoJob]:
    for task in tasks:
        yield DemoJob(
            id=job.id,
            spec=job.spec,
            submit_t=job.submit_t,
            priority=job.priority,
            state=job.state,
            reason=job.reason,
            limit_s=job.limit_s,
            eligible_t=job.eligible_t,
            expected_t=job.expected_t,
            end_t=job.end_t,
            array_id=job.array_id,
            task=task,
            restarts=job.restarts,
        )


_KEYS: dict[str, Callable[[View, DemoJob], tuple[int, int | str]]] = {
    "i": lambda v, j: (j.array_id or j.het_id or j.id, j.task or j.het_offset),
    "A": lambda v, j: (j.id, 0),
    "D": lambda v, j: (j.node_count, 0),
    "C": lambda v, j: (j.spec.cpus * j.node_count, 0),
    "M": lambda v, j: (j.used_s(v.t), 0),
    "L": lambda v, j: (j.limit_s - j.used_s(v.t), 0),
    "l": lambda v, j: (j.limit_s, 0),
    "p": lambda v, j: (j.priority, 0),
    "Q": lambda v, j: (j.priority, 0),
    "S": lambda v, j: (_start_key(j), 0),
    "V": lambda v, j: (j.submit_t, 0),
    "t": lambda v, j: (0, state_word(j)),
    "T": lambda v, j: (0, state_word(j)),
}


def _start_key(job: DemoJob) -> int:
    """What has no start yet comes first."""
    start = job.expected_t if job.pending else job.start_t
    return -(10**12) if start is None else start


def _sort(view: View, rows: list[DemoJob], options: Options) -> None:
    keys = options.get("sort")
    keys = ("S" if options.has("start") else "P,t,-p") if keys is None else keys
    for key in reversed([one.strip() for one in keys.split(",") if one.strip()]):
        letter = key.lstrip("+-")[:1]
        if letter in _KEYS:
            by = _KEYS[letter]
        elif letter in BY_LETTER:
            by = _by_text(BY_LETTER[letter][1])
        else:
            raise Misused(said(err=f"squeue: error: Invalid sort specification: {key}\n", rc=1))
        rows.sort(key=lambda job, by=by: by(view, job), reverse=key.startswith("-"))  # type: ignore[misc]


def _by_text(value: Value) -> Callable[[View, DemoJob], tuple[int, int | str]]:
    return lambda view, job: (0, value(view, job))
