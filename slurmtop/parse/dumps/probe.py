r"""The processes of one node as the script of ``collect/nodes/processes.py`` prints them.

A line is a letter, mostly a pid, and values; a newline inside of a value is the byte 1::

    slurmtop-processes 1
    M time 1796077326
    S 4711 63457 4700 S python3
    U 4711 1000 0000000180004a03 0000000001001000 12 4711,1
    C 4711 0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0
    R 4711
    E 4711 RANK=3
    A 4711 train.py
    T 4711 63457
    end

``M``: of the node. ``S``: start in ticks, parent, state, name. ``U``: uid, ``SigCgt``, ``SigIgn``,
threads, pids inside of namespaces. ``C``: cgroup of Slurm. ``R``: its environment is readable,
``E``: a variable of it. ``A``: a word of its command line. ``T``: the start once more, read last:
where it is another one the pid was given to a new process meanwhile, and neither is told. ``N``:
the name of a uid. A look without its last line was cut.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from slurmtop.model.process import NodeProcess, NodeProcesses
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.parse.dumps.masked import TextMask
from slurmtop.parse.mask import MARK, mask

#: By this the script, and what it starts, are known among the processes of the node.
NAME = "slurmtop-processes"
_OUR_NAMES = "slurmtop-"
_FIRST = f"{NAME} 1".encode()
#: Words of a command line, variables, paths: of the program's own making.
_MADE_UP = re.compile(rb"[AELQ] [0-9]{1,20} (?:torch |nccl |rccl )?")
_VARIABLE = re.compile(rb"[A-Z0-9_]{1,80}=")
_LONGEST_NUMBER = 20
_CGROUP = re.compile(r"/job_([0-9]{1,10})(?:/step_([A-Za-z0-9_+]{1,20}))?(?:/|$)")
_STEPD = re.compile(r"slurmstepd: \[([0-9]{1,10})\.([a-z0-9+]{1,20})\]")
#: Slurm's own numbers for the parts of a job that are no step of srun, in 32 bits.
_STEPS = {"4294967291": "batch", "4294967292": "extern", "4294967290": "interactive"}
#: What stands between us and the node's door: shells, sshd, the limit of time.
_SHELLS = ("sh", "bash", "dash", "ash", "ksh", "zsh", "csh", "tcsh", "fish")
_DOORS = frozenset((*_SHELLS, "timeout", "sshd", "sshd-session", "su", "sudo"))


@dataclass(slots=True)
class _Seen:
    """What is known of one pid so far."""

    start_ticks: int
    ppid: int
    state: str
    name: str
    start_after: int | None = None
    status: list[str] = field(default_factory=list)
    cgroup: str = ""
    argv: list[str] = field(default_factory=list)
    env: dict[str, str] | None = None


def parse_processes(stdout: bytes, host: str, at: datetime) -> NodeProcesses:
    """What one node told of its processes, slurmtop's own left out. Total.

    ``at`` is when it was asked, by our clock: ``started_at`` of a process is by that clock too.
    """
    lines = mask_lines(stdout.split(b"\n"))
    if _FIRST not in lines:
        words = f"{host} told nothing of its processes"
        return NodeProcesses(
            host=host, at=at, complete=False, failure=Failure(Trouble.OTHER, words)
        )
    lines = lines[lines.index(_FIRST) + 1 :]
    told: dict[str, str] = {}
    users: dict[int, str] = {}
    seen: dict[int, _Seen] = {}
    whole = False
    for line in lines:
        kind, _, rest = line.decode("utf-8", "replace").partition(" ")
        if kind == "end":
            whole = True
        elif kind == "M":
            name, _, value = rest.partition(" ")
            told[name] = value
        elif kind == "N":
            uid, _, user = rest.partition(" ")
            users[number(uid) or 0] = user
        else:
            _take(kind, rest, seen)
    found = {pid: one for pid, one in seen.items() if one.start_after == one.start_ticks}
    placed = _places(found)
    ours = _our_own(found, placed, told)
    hz, uptime = number(told.get("hz", "")), _seconds(told.get("uptime", ""))
    processes = tuple(
        _process(host, pid, one, placed[pid], users, _started(one.start_ticks, hz, uptime, at))
        for pid, one in sorted(found.items())
        if pid not in ours
    )
    seconds = number(told.get("time", ""))
    me = found.get(number(told.get("self", "")) or 0)
    inside = None if me is None else _CGROUP.search(me.cgroup)
    return NodeProcesses(
        host=host,
        at=at,
        processes=processes,
        node_at=_moment(seconds),
        boot_id=told.get("boot") or None,
        complete=whole and "cut" not in told,
        hidden="hidden" in told,
        inside=None if inside is None else inside[1],
        ptrace_scope=number(told.get("ptrace", "")),
    )


def mask_lines(lines: Iterable[bytes]) -> list[bytes]:
    """Lines of an answer with the secrets in them masked. What a job makes up has its bounds; what
    Slurm, the kernel and tools tell is short."""
    masks, out = TextMask(), []
    for line in lines:
        head = _MADE_UP.match(line)
        if head is None:
            out.append(mask(line))
            continue
        text = masks(line[head.end() :])
        if text is None:
            text = (_VARIABLE.match(line, head.end()) or [b""])[0] + MARK
        out.append(head[0] + text)
    return out


def _take(kind: str, rest: str, seen: dict[int, _Seen]) -> None:
    word, _, rest = rest.partition(" ")
    pid = number(word)
    if pid is None:
        return
    if kind == "S":
        ticks, ppid, state, name = (*rest.split(" ", 3), "", "", "", "")[:4]
        start, parent = number(ticks), number(ppid)
        if start is not None and parent is not None:
            seen[pid] = _Seen(start, parent, state[:1] or "?", _text(name))
        return
    one = seen.get(pid)
    if one is None:
        return
    if kind == "T":
        one.start_after = number(rest)
    elif kind == "U":
        one.status = rest.split(" ")
    elif kind == "C":
        one.cgroup = rest
    elif kind == "A":
        one.argv.append(_text(rest))
    elif kind == "R" and one.env is None:
        one.env = {}
    elif kind == "E":
        name, equals, value = rest.partition("=")
        if equals:
            one.env = one.env or {}
            # Like getenv(): of two with one name the first counts.
            one.env.setdefault(name, _text(value))


def _process(
    host: str,
    pid: int,
    one: _Seen,
    place: tuple[str | None, str | None],
    users: Mapping[int, str],
    started_at: datetime | None,
) -> NodeProcess:
    uid, caught, ignored, threads, inner = (*one.status, *[""] * 5)[:5]
    owner = number(uid)
    inside = [number(word) for word in inner.split(",")][1:]
    return NodeProcess(
        host=host,
        pid=pid,
        start_ticks=one.start_ticks,
        ppid=one.ppid,
        uid=owner,
        user=None if owner is None else users.get(owner),
        state=one.state,
        name=one.name,
        argv=tuple(one.argv),
        started_at=started_at,
        job=place[0],
        step=place[1],
        env=None if one.env is None else tuple(sorted(one.env.items())),
        caught=_mask_bits(caught),
        ignored=_mask_bits(ignored),
        threads=number(threads),
        inner_pids=tuple(found for found in inside if found is not None),
    )


def _places(found: Mapping[int, _Seen]) -> dict[int, tuple[str | None, str | None]]:
    """Job and step of each: by its cgroup, else its environment, else as its parent; the first
    parent of a step is its slurmstepd."""
    placed = {pid: _own_place(one) for pid, one in found.items()}
    for pid in found:
        chain = []
        at = pid
        while at in found and placed[at][0] is None and at not in chain:
            chain.append(at)
            at = found[at].ppid
        if at in placed and placed[at][0] is not None:
            placed.update(dict.fromkeys(chain, placed[at]))
    return placed


def _own_place(one: _Seen) -> tuple[str | None, str | None]:
    group = _CGROUP.search(one.cgroup)
    if group is not None:
        step = group[2]
        return group[1], _STEPS.get(step, step) if step else None
    # A title anybody may write; root's own daemon says what it runs.
    titled = _STEPD.fullmatch(one.argv[0]) if one.argv and one.status[:1] == ["0"] else None
    if titled is not None:
        return titled[1], _STEPS.get(titled[2], titled[2])
    env = one.env or {}
    job = env.get("SLURM_JOB_ID") or env.get("SLURM_JOBID") or ""
    if number(job) is None:
        return None, None
    step = env.get("SLURM_STEP_ID") or env.get("SLURM_STEPID")
    # Slurm gives a batch script no number of a step.
    return job, "batch" if step is None else _STEPS.get(step, step)


def _our_own(
    found: Mapping[int, _Seen],
    placed: Mapping[int, tuple[str | None, str | None]],
    told: Mapping[str, str],
) -> set[int]:
    """What slurmtop started there: every script of its own with all below it, and the shells on
    the way to it from the node's door (sshd, slurmstepd)."""
    children: dict[int, list[int]] = {}
    for pid, one in found.items():
        children.setdefault(one.ppid, []).append(pid)
    me = number(told.get("self", ""))
    roots = {pid for pid, one in found.items() if pid == me or _is_our_script(one.argv)}
    doors: set[int] = set()
    for pid in roots:
        at = found[pid].ppid
        while at in found and at not in doors and _is_door(found[at], placed[at]):
            doors.add(at)
            at = found[at].ppid
    # The shells of the way have watchdogs beside the script; a sshd has the logins of others.
    todo = [*roots, *(pid for pid in doors if found[pid].name in _SHELLS)]
    below: set[int] = set()
    while todo:
        pid = todo.pop()
        if pid not in below:
            below.add(pid)
            todo += children.get(pid, [])
    return doors | below


def _is_our_script(argv: list[str]) -> bool:
    """``/bin/sh -c SCRIPT slurmtop-processes``, also behind a limit of time."""
    shell = next((n for n, word in enumerate(argv[:6]) if word == "-c"), None)
    if shell is None or len(argv) < shell + 3:
        return False
    return argv[shell + 2].startswith(_OUR_NAMES)


def _is_door(one: _Seen, place: tuple[str | None, str | None]) -> bool:
    return one.name in _DOORS and not _is_batch(place) and "slurm_script" not in " ".join(one.argv)


def _is_batch(place: tuple[str | None, str | None]) -> bool:
    return place[1] in ("batch", "interactive")


def _started(ticks: int, hz: int | None, uptime_s: float | None, at: datetime) -> datetime | None:
    if not hz or uptime_s is None:
        return None
    try:
        return at - timedelta(seconds=uptime_s - ticks / hz)
    except OverflowError:
        return None


def _moment(seconds: int | None) -> datetime | None:
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _seconds(text: str) -> float | None:
    try:
        return float(text.split(" ")[0][:_LONGEST_NUMBER])
    except ValueError:
        return None


def _mask_bits(text: str) -> int | None:
    return int(text, 16) if re.fullmatch(r"[0-9a-fA-F]{1,32}", text) else None


def number(text: str) -> int | None:
    """A plain number of up to twenty digits; None for all else."""
    return int(text) if len(text) <= _LONGEST_NUMBER and text.isascii() and text.isdigit() else None


def _text(text: str) -> str:
    return text.replace("\x01", "\n")
