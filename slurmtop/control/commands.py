"""The exact commands of an action, and the grammar that every one of them must fit."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from slurmtop.control.actions import NO_DETAILS, Details, Kind, RankPid, Target
from slurmtop.control.node_kill import PIDS_PER_CALL, check_kill, kill_argv
from slurmtop.model.script import Recipient
from slurmtop.model.spans import span_text
from slurmtop.parse.slurm.hostlist import HostlistError, compress_hosts, expand_hosts

#: Ids in one call. More go into further calls with a pause between them.
IDS_PER_CALL = 50
#: Longest bracket that is put on a command line as one argument.
ID_CHARS = 2_000
#: Slurm's own largest: a year in minutes.
MAX_LIMIT_MINUTES = 525_600

_ID_TEXT = (
    r"[1-9][0-9]{0,9}"
    r"(?:_(?:[0-9]{1,9}|\[[0-9]{1,9}(?:-[0-9]{1,9})?(?:,[0-9]{1,9}(?:-[0-9]{1,9})?)*\]))?"
)
_ID = re.compile(_ID_TEXT)
_STEP_ID = re.compile(r"[1-9][0-9]{0,9}(?:_[0-9]{1,9})?\.[0-9]{1,9}")
_JOBS = re.compile(rf"{_ID_TEXT}(?:,{_ID_TEXT})*")
_CLUSTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_SIGNAL = re.compile(r"[A-Z][A-Z0-9]{1,9}|[1-9][0-9]?")
_HOSTS = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.,\[\]-]*")
_SCONTROL = {
    Kind.REQUEUE: "requeue",
    Kind.REQUEUE_HOLD: "requeuehold",
    Kind.HOLD: "hold",
    Kind.RELEASE: "release",
}
#: Linux's own numbers (x86, Arm): scancel takes any of them.
SIGNAL_NUMBERS = {
    "HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "BUS": 7, "FPE": 8,
    "KILL": 9, "USR1": 10, "SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15,
    "STKFLT": 16, "CHLD": 17, "CONT": 18, "STOP": 19, "TSTP": 20, "TTIN": 21, "TTOU": 22,
    "URG": 23, "XCPU": 24, "XFSZ": 25, "VTALRM": 26, "PROF": 27, "WINCH": 28, "IO": 29,
    "PWR": 30, "SYS": 31,
}  # fmt: skip
#: The names that scancel knows (measured on 22.05.8); the others it takes only as numbers.
_NAMED_SIGNALS = (
    "HUP", "INT", "QUIT", "ABRT", "KILL", "ALRM", "TERM", "USR1", "USR2",
    "URG", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "XCPU",
)  # fmt: skip
_REACH = {Recipient.BATCH: ("--batch",), Recipient.EVERYTHING: ("--full",)}


@dataclass(frozen=True, slots=True)
class Call:
    """One command of an action and the targets that it names. ``host`` None: it runs here."""

    argv: tuple[str, ...]
    targets: tuple[Target, ...]
    host: str | None = None
    ranks: tuple[RankPid, ...] = ()


def id_allowed(text: str) -> bool:
    """True for the forms of a job id that go on a command line: 4711, 4711_3, 4711_[1-5,7]."""
    return _ID.fullmatch(text) is not None


def cluster_allowed(text: str) -> bool:
    """True for a plain cluster name; several names in one are never one."""
    return _CLUSTER.fullmatch(text) is not None


def signal_allowed(text: str) -> bool:
    """True for a signal's name without SIG, or its number."""
    return _SIGNAL.fullmatch(text) is not None


def host_allowed(text: str) -> bool:
    """True for one plain host name."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}", text) is not None


def calls_for(
    kind: Kind, targets: Sequence[Target], cluster: str, details: Details = NO_DETAILS
) -> tuple[Call, ...]:
    """The commands that do ``kind`` to ``targets``. ``ValueError`` for what fits no command.

    scancel gets only ids, never a filter or ``-v``, and with a signal or a step ``--ctld``:
    anything else makes it load the job table of the whole cluster first.
    """
    if details.recipient is Recipient.RANKS and kind is Kind.SIGNAL:
        return _on_nodes(targets, details)
    where = ("-M", cluster) if cluster else ()
    if kind is Kind.EXCLUDE:
        calls = _excluding(targets, where, details)
    elif kind is Kind.LIMIT:
        tail = (f"TimeLimit={details.limit_minutes}",)
        calls = _listed(targets, ("scontrol", *where, "update"), tail, "JobId=")
    elif kind in _SCONTROL:
        calls = _listed(targets, ("scontrol", *where, _SCONTROL[kind]), (), "")
    else:
        calls = _scancel(kind, targets, where, details)
    for call in calls:
        check_argv(call.argv)
    return tuple(calls)


def _on_nodes(targets: Sequence[Target], details: Details) -> tuple[Call, ...]:
    """One command a node, for the ranks of those jobs that are among ``targets``."""
    owners = {key: target for target in targets for key in (target.key, *target.parts)}
    by_host: dict[str, list[RankPid]] = {}
    for rank in details.ranks:
        if rank.job in owners:
            by_host.setdefault(rank.host, []).append(rank)
    calls = []
    for host, those in by_host.items():
        if not host_allowed(host):
            raise ValueError(f"not a host: {host!r}")
        for start in range(0, len(those), PIDS_PER_CALL):
            ranks = tuple(those[start : start + PIDS_PER_CALL])
            argv = kill_argv(_signal_word(details.signal), ranks)
            check_argv(argv, host)
            named = dict.fromkeys(owners[rank.job] for rank in ranks)
            calls.append(Call(argv, tuple(named), host, ranks))
    return tuple(calls)


def argvs_for(
    kind: Kind, targets: Sequence[Target], cluster: str, details: Details = NO_DETAILS
) -> tuple[tuple[str, ...], ...]:
    """The commands alone; see :func:`calls_for`."""
    return tuple(call.argv for call in calls_for(kind, targets, cluster, details))


def _scancel(
    kind: Kind, targets: Sequence[Target], where: tuple[str, ...], details: Details
) -> list[Call]:
    steps = any(target.step is not None for target in targets)
    flags: tuple[str, ...] = ()
    if kind is Kind.SIGNAL:
        reach = _REACH.get(details.recipient, ())
        flags = ("--ctld", f"--signal={_signal_word(details.signal)}", *reach)
    elif steps or details.one_call:
        flags = ("--ctld",)
    head = ("scancel", *where, *flags)
    named = _named(targets)
    together = details.one_call and not steps
    per_call = max(1, len(named)) if together else IDS_PER_CALL
    return [
        _call(named[start : start + per_call], lambda ids: (*head, *ids))
        for start in range(0, len(named), per_call)
    ]


def _signal_word(name: str) -> str:
    number = SIGNAL_NUMBERS.get(name)
    return name if number is None or name in _NAMED_SIGNALS else str(number)


def _listed(
    targets: Sequence[Target], head: tuple[str, ...], tail: tuple[str, ...], prefix: str
) -> list[Call]:
    """scontrol takes ids with commas between them; a bracket has commas of its own, so that it
    goes alone."""
    calls: list[Call] = []
    plain: list[tuple[str, list[Target]]] = []
    for text, those in _named(targets):
        if "[" in text:
            calls.append(Call((*head, f"{prefix}{text}", *tail), tuple(those)))
        else:
            plain.append((text, those))
    for start in range(0, len(plain), IDS_PER_CALL):
        group = plain[start : start + IDS_PER_CALL]
        calls.append(_call(group, lambda ids: (*head, f"{prefix}{','.join(ids)}", *tail)))
    return calls


def _call(
    named: Sequence[tuple[str, list[Target]]], argv: Callable[[list[str]], tuple[str, ...]]
) -> Call:
    targets = dict.fromkeys(target for _, those in named for target in those)
    return Call(argv([text for text, _ in named]), tuple(targets))


def _excluding(targets: Sequence[Target], where: tuple[str, ...], details: Details) -> list[Call]:
    """One call for each list that results: what a job excludes already stays excluded."""
    by_list: dict[str, list[Target]] = {}
    for target in targets:
        by_list.setdefault(excluded_after(target, details.exclude), []).append(target)
    calls: list[Call] = []
    for hosts, those in by_list.items():
        head = ("scontrol", *where, "update")
        calls.extend(_listed(those, head, (f"ExcNodeList={hosts}",), "JobId="))
    return calls


def excluded_after(target: Target, hosts: Sequence[str]) -> str:
    """The host list that ``target`` excludes once ``hosts`` are added.

    ``ValueError`` where what it excludes already cannot be read: it must not be lost.
    """
    try:
        before = expand_hosts(target.excluded_nodes or "")
    except HostlistError as error:
        raise ValueError(f"the list of excluded nodes cannot be read: {error}") from error
    return compress_hosts(list(dict.fromkeys((*before, *hosts))))


def check_argv(argv: Sequence[str], host: str | None = None) -> None:
    """Refuse (``ValueError``) anything that is not one of the commands of :func:`calls_for`."""
    if host is not None:
        if not host_allowed(host):
            raise ValueError(f"not a host: {host!r}")
        check_kill(argv, map(_signal_word, SIGNAL_NUMBERS))
        return
    words = list(argv)
    program = words.pop(0) if words else ""
    if program not in ("scancel", "scontrol"):
        raise ValueError("not a program that an action may run")
    if words[:1] == ["-M"]:
        if len(words) < 2 or not cluster_allowed(words[1]):
            raise ValueError("not a cluster name")
        words = words[2:]
    if program == "scancel":
        _check_scancel(words)
    else:
        _check_scontrol(words)


def _check_scancel(words: list[str]) -> None:
    direct = words[:1] == ["--ctld"]
    if direct:
        words = words[1:]
    if words and words[0].startswith("--signal="):
        if not direct or not signal_allowed(words[0].removeprefix("--signal=")):
            raise ValueError("not a signal")
        words = words[1:]
        if words[:1] in (["--batch"], ["--full"]):
            words = words[1:]
    if not words:
        raise ValueError("no job named")
    for text in words:
        if not id_allowed(text) and not (direct and _STEP_ID.fullmatch(text)):
            raise ValueError(f"not a job id: {text!r}")


def _check_scontrol(words: list[str]) -> None:
    verb, jobs, rest = (words[0], words[1], words[2:]) if len(words) > 1 else ("", "", [])
    if verb == "update":
        if not jobs.startswith("JobId=") or len(rest) != 1:
            raise ValueError("not an update of jobs")
        jobs = jobs.removeprefix("JobId=")
        name, _, value = rest[0].partition("=")
        minutes = value.isascii() and value.isdigit() and 0 < int(value) <= MAX_LIMIT_MINUTES
        hosts = _HOSTS.fullmatch(value) is not None
        if not ((name == "TimeLimit" and minutes) or (name == "ExcNodeList" and hosts)):
            raise ValueError("not a change that an action may make")
    elif verb not in _SCONTROL.values() or rest:
        raise ValueError("not a command that an action may run")
    if not _JOBS.fullmatch(jobs):
        raise ValueError(f"not a list of job ids: {jobs!r}")


def _named(targets: Sequence[Target]) -> list[tuple[str, list[Target]]]:
    """(argument, the targets it names): one an array where it fits, so that 900 marked tasks
    are one argument."""
    out: dict[str, list[Target]] = {}
    arrays: dict[str, list[Target]] = {}
    for target in targets:
        if target.tasks and target.step is None:
            arrays.setdefault(target.base, []).append(target)
        else:
            for text in target.ids:
                out.setdefault(text, []).append(target)
    for base, those in arrays.items():
        ranges = [span for target in those for span in target.tasks]
        for group in _task_groups(ranges):
            first, last = group[0][0], group[-1][1]
            inside = [
                target
                for target in those
                if any(low <= last and first <= high for low, high in target.tasks)
            ]
            out.setdefault(_task_text(base, group), []).extend(inside)
    return list(out.items())


def task_ids(base: str, ranges: Iterable[tuple[int, int]]) -> list[str]:
    """``4711_3`` for one task, else ``4711_[1-5,7]``, cut into several where it grows long."""
    return [_task_text(base, group) for group in _task_groups(ranges)]


def _task_groups(ranges: Iterable[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Merged ranges in rising order, as many together as fit one argument."""
    groups: list[list[tuple[int, int]]] = []
    size = ID_CHARS
    for low, high in merge_ranges(ranges):
        length = len(span_text((low, high))) + 1
        if size + length > ID_CHARS:
            groups.append([])
            size = 0
        groups[-1].append((low, high))
        size += length
    return groups


def _task_text(base: str, ranges: Sequence[tuple[int, int]]) -> str:
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return f"{base}_{ranges[0][0]}"
    return f"{base}_[{','.join(map(span_text, ranges))}]"


def merge_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sorted, without overlaps, neighbours joined."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return out
