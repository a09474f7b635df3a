"""What single lines of a node's kernel log tell of a process, a card, a link or a server.

Source: ``dmesg -T`` or ``journalctl -k -o short-iso``, with ``TZ=UTC``; else plain ``dmesg``::

    [Mon May  5 10:00:01 2031] python[4711]: segfault at 0 ip 00007f13 sp 00007ffd error 4
    [812.250000] NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python, GPU has fallen off the bus.

of memory that ran out, where the first line tells the cgroup and a later one the size::

    oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/a/job_77,task_memcg=/a/job_77/b,task=python,pid=9
    Memory cgroup out of memory: Killed process 9 (python) total-vm:123kB, anon-rss:99kB
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from slurmtop.model.gpu import KernelKind
from slurmtop.model.probe import KernelLine, KernelSays
from slurmtop.parse.logs.kernel import driver_event

#: The namespace of pids that the machine was started with (``PROC_PID_INIT_INO`` of Linux).
_FIRST_PIDS = "pid:[4026531836]"
_MOST = 400
#: The lines on one process that was killed stand so close together.
_TOGETHER_S = 5.0
_BOOT = re.compile(r"^(?:\S{1,80} )?\[\s*(?P<s>\d{1,10}\.\d{1,9})\]")
_WALL = re.compile(
    r"^\[[A-Z][a-z]{2} (?P<month>[A-Z][a-z]{2})\s{1,2}(?P<day>\d{1,2}) (?P<time>\d\d:\d\d:\d\d) "
    r"(?P<year>\d{4})\]"
)
_ISO = re.compile(
    r"^(?P<at>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)(?P<zone>[+-]\d\d:?\d\d|Z)?\b"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_OOM_LINE = re.compile(
    r"oom-kill:constraint=\w{1,40},.{0,300}?task_memcg=(?P<cgroup>[^,\n]{1,300}),"
    r"task=(?P<name>[^,\n]{1,64}),pid=(?P<pid>\d{1,10})"
)
_OOM_KILL = re.compile(
    r"(?:ut of memory: )?Kill(?:ed)? process (?P<pid>\d{1,10}) \((?P<name>[^)\n]{1,64})\)"
)
_CRASH = re.compile(
    r"(?:^|\s)(?:traps: )?(?P<name>\S[^\[\]\n]{0,15})\[(?P<pid>\d{1,10})\]:? "
    r"(?:segfault at|general protection|trap (?:invalid opcode|divide error|int3|stack segment))"
)
_BLOCKED = re.compile(
    r"INFO: task (?P<name>[^:\n]{1,20}):(?P<pid>\d{1,10}) blocked for more than \d{1,9} seconds"
)
_LINK = re.compile(
    r"(?:mlx[45]_\w{2,8}|bnxt_\w{2,4}|hfi1\w{0,8}|irdma|cxi\w{0,8}) (?P<pci>[0-9a-fA-F:.]{5,16})"
    r"(?P<name>[ :]{1,2}[\w./-]{1,30}:?)?(?: Port: ?(?P<port>\d{1,3}))?:? ?"
    r"(?:NIC )?[Ll]ink (?:is )?(?P<state>[Dd]own|DOWN|[Uu]p|UP)\b"
)
_SERVER = re.compile(
    r"(?:nfs4?: |NFS: )?server (?P<server>\S{1,120}?),? (?:is )?"
    r"(?P<said>not responding|OK\b|timed out)"
)
_LUSTRE = re.compile(
    r"(?:Lustre|LustreError): .{0,120}?(?P<server>\S{1,80}-(?:OST|MDT)[0-9a-f]{4})\S{0,40}"
    r".{0,80}?(?P<said>Connection to .{0,120} was lost|Connection restored|Connection to .{0,120} "
    r"restored)"
)
_MENDED = re.compile(r"OK\b|restored$|restored")


def own_pids(namespace: str) -> bool | None:
    """Is ``namespace`` (``pid:[4026531836]``) the one whose numbers the kernel log names?"""
    return namespace == _FIRST_PIDS if namespace else None


def parse_kernel_lines(
    lines: Iterable[str],
    *,
    at: datetime,
    node_at: datetime | None = None,
    uptime_s: float | None = None,
) -> tuple[KernelLine, ...]:
    """Those of ``lines`` that are understood, in their order. Total.

    ``at`` is when the node was asked by our clock, ``node_at`` by its own; ``uptime_s`` its seconds
    since boot then. The times told are by our clock.
    """

    def ours(text: str) -> datetime | None:
        return _moment(text, at, node_at, uptime_s)

    found = [one for line in list(lines)[-_MOST:] if (one := _line(line, ours)) is not None]
    return _with_cgroups(found)


def _line(text: str, ours: Callable[[str], datetime | None]) -> KernelLine | None:
    for read in (_of_driver, _of_memory, _of_crash, _of_blocked, _of_link, _of_server):
        one = read(text)
        if one is not None:
            return replace(one, at=ours(text))
    return None


def _of_driver(text: str) -> KernelLine | None:
    event = driver_event(text)
    if event is None or event.kind is not KernelKind.XID:
        return None
    return KernelLine(
        text=text,
        says=KernelSays.XID,
        pid=event.pid,
        name=event.process,
        code=event.code,
        bus_id=event.bus_id,
    )


def _of_memory(text: str) -> KernelLine | None:
    found = _OOM_LINE.search(text)
    cgroup = found["cgroup"] if found is not None else ""
    found = found or _OOM_KILL.search(text)
    if found is None:
        return None
    return KernelLine(
        text=text, says=KernelSays.MEMORY, pid=int(found["pid"]), name=found["name"], cgroup=cgroup
    )


def _of_crash(text: str) -> KernelLine | None:
    found = _CRASH.search(text)
    if found is None:
        return None
    name = found["name"].strip()
    return KernelLine(text=text, says=KernelSays.CRASH, pid=int(found["pid"]), name=name)


def _of_blocked(text: str) -> KernelLine | None:
    found = _BLOCKED.search(text)
    if found is None:
        return None
    return KernelLine(
        text=text, says=KernelSays.BLOCKED, pid=int(found["pid"]), name=found["name"].strip()
    )


def _of_link(text: str) -> KernelLine | None:
    found = _LINK.search(text)
    if found is None:
        return None
    name = (found["name"] or "").strip(" :")
    return KernelLine(
        text=text,
        says=KernelSays.LINK,
        subject=name or found["pci"],
        mended=found["state"].lower() == "up",
    )


def _of_server(text: str) -> KernelLine | None:
    found = _SERVER.search(text) or _LUSTRE.search(text)
    if found is None:
        return None
    return KernelLine(
        text=text,
        says=KernelSays.STORAGE,
        subject=found["server"],
        mended=_MENDED.search(found["said"]) is not None,
    )


def _with_cgroups(lines: list[KernelLine]) -> tuple[KernelLine, ...]:
    """One line a process that was killed: the last one, with the cgroup that another one tells."""
    out: list[KernelLine] = []
    for one in lines:
        before = out[-1] if out else None
        if (
            one.says is KernelSays.MEMORY
            and before is not None
            and (before.says, before.pid, before.name) == (one.says, one.pid, one.name)
            and _together(before, one)
        ):
            out[-1] = replace(one, cgroup=one.cgroup or before.cgroup)
        else:
            out.append(one)
    return tuple(out)


def _together(one: KernelLine, later: KernelLine) -> bool:
    if one.at is None or later.at is None:
        return True
    return abs((later.at - one.at).total_seconds()) <= _TOGETHER_S


def _moment(
    text: str, at: datetime, node_at: datetime | None, uptime_s: float | None
) -> datetime | None:
    try:
        boot = _BOOT.match(text)
        if boot is not None:
            if uptime_s is None:
                return None
            return at - timedelta(seconds=uptime_s - float(boot["s"]))
        wall = _wall(text)
        return None if wall is None or node_at is None else wall - (node_at - at)
    except (OverflowError, ValueError):
        return None


def _wall(text: str) -> datetime | None:
    """A time of day in front of the line, which is in UTC where it tells no zone."""
    found = _WALL.match(text)
    if found is not None and found["month"] in _MONTHS:
        hour, minute, second = (int(part) for part in found["time"].split(":"))
        month = _MONTHS.index(found["month"]) + 1
        return datetime(
            int(found["year"]), month, int(found["day"]), hour, minute, second, tzinfo=UTC
        )
    iso = _ISO.match(text)
    if iso is None:
        return None
    told = datetime.fromisoformat(iso["at"].replace(",", ".")[:26] + (iso["zone"] or "+00:00"))
    return told.astimezone(UTC)
