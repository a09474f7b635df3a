"""What the NVIDIA driver wrote into a node's kernel log: ``dmesg`` or ``journalctl -k``.

All forms of an Xid, an SXid of an NVSwitch, and a card lost without a code (three lines)::

    [Mon May  5 10:00:01 2031] NVRM: Xid (PCI:0000:3b:00): 31, pid=21180, name=python, Ch 00000008
    [   12.345678] NVRM: Xid (0000:03:00): 14, Channel 00000001
    May 05 10:00:01 gpu05 kernel: nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30
"""

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime

from slurmtop.model.gpu import KernelEvent, KernelKind, KernelLog
from slurmtop.model.snapshot import Failure, Trouble

_XID = re.compile(
    r"Xid \((?:PCI:)?(?P<bus>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.\d)?"
    r"(?: GPU-I:(?P<slice>\d{1,3}))?[^)]{0,40}\): (?P<code>\d{1,9})(?:, ?(?P<text>.*))?"
)
_SXID = re.compile(
    r"SXid \((?:PCI:)?(?P<bus>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.\d)?\): "
    r"(?P<code>\d{1,9})(?:, (?P<severity>Fatal|Non-fatal|Always Fatal)\b)?,? ?(?P<text>.*)"
)
_CARD = re.compile(
    r"(?:The NVIDIA GPU|NVRM: GPU) (?P<bus>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.\d)?"
)
_UUID = re.compile(
    r"GPU at (?:PCI:)?(?P<bus>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})\S{0,3} "
    r"(?P<uuid>GPU-[0-9a-fA-F-]{8,80})"
)
_PID = re.compile(r"pid=['\"]?(?P<pid>\d{1,10})['\"]?(?:,|$)")
_NAME = re.compile(r"name=(?P<name>[^,]{1,64})(?:,|$)")
#: The words about a card that is gone.
FELL = "fallen off the bus"
_TEXT_CHARS = 400
#: The last line of a three-line message stands this close behind its first.
MESSAGE_LINES = 3

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_BOOT = re.compile(r"\[\s*(?P<s>\d{1,12}\.\d{1,9})\]")
_WALL = re.compile(
    r"(?P<month>[A-Z][a-z]{2})\s{1,2}(?P<day>\d{1,2}) (?P<time>\d\d:\d\d:\d\d)"
    r"(?: (?P<year>\d{4})\b)?"
)
_ISO = re.compile(r"(?P<day>\d{4}-\d\d-\d\d)[T ](?P<time>\d\d:\d\d:\d\d)")


def parse_kernel(stdout: bytes, rc: int | None = 0, stderr: bytes = b"") -> KernelLog:
    """The events in order. Never raises.

    A log that may not be read is a failure that is not to be asked for again; ``grep`` without
    a find is none.
    """
    lines = stdout.decode("utf-8", "replace").split("\n")
    events = tuple(_events(lines))
    uuids = {found["bus"].lower(): found["uuid"] for line in lines if (found := _UUID.search(line))}
    failure = None if events else _failure(rc, stderr.decode("utf-8", "replace"))
    return KernelLog(events=events, uuids=tuple(uuids.items()), failure=failure)


def _failure(rc: int | None, said: str) -> Failure | None:
    if re.search(r"not permitted|Permission denied|insufficient permissions", said):
        says = "You may not read the kernel log of this node: Xid errors there are not known."
        return Failure(Trouble.DENIED, says, said[:_TEXT_CHARS], math.inf)
    if rc is None:
        return Failure(Trouble.TIMEOUT, "The kernel log of this node could not be read in time.")
    return None


def _events(lines: list[str]) -> Iterator[KernelEvent]:
    for place, line in enumerate(lines):
        if (event := driver_event(line)) is not None:
            yield event
        elif found := find_card(line):
            message = [line[found.end() :]]
            for later in lines[place + 1 : place + MESSAGE_LINES]:
                if _CARD.search(later) or _XID.search(later):
                    break
                message.append(later.partition("NVRM:")[2])
            text = " ".join(" ".join(message).split())
            if FELL in text:
                time_text, clock_s = _time(line[: line.find("NVRM:")])
                yield KernelEvent(
                    kind=KernelKind.LOST,
                    code=None,
                    bus_id=found["bus"].lower(),
                    text=text[:_TEXT_CHARS],
                    time_text=time_text,
                    clock_s=clock_s,
                )


def driver_event(line: str) -> KernelEvent | None:
    """The Xid or SXid that one line tells."""
    if found := _SXID.search(line):
        return _event(KernelKind.SXID, line, found)
    if "NVRM" in line and (found := _XID.search(line)):
        return _event(KernelKind.XID, line, found)
    return None


def find_card(line: str) -> re.Match[str] | None:
    """Where a line begins a message about a whole card (group ``bus``), of up to MESSAGE_LINES."""
    return _CARD.search(line) if "NVRM:" in line else None


def _event(kind: KernelKind, line: str, found: re.Match[str]) -> KernelEvent:
    groups = found.groupdict()
    text = (groups["text"] or "").strip()
    pid, name = _PID.search(text), _NAME.search(text)
    time_text, clock_s = _time(line[: found.start()])
    process = name["name"].strip() if name else None
    return KernelEvent(
        kind=kind,
        code=int(groups["code"]),
        bus_id=groups["bus"].lower(),
        text=text[:_TEXT_CHARS],
        time_text=time_text,
        clock_s=clock_s,
        pid=int(pid["pid"]) if pid else None,
        process=None if process == "<unknown>" else process,
        slice_id=groups.get("slice"),
        severity=groups.get("severity"),
    )


def _time(before: str) -> tuple[str, float | None]:
    """The time in front of a message as printed, and in seconds of the node's own clock."""
    if boot := _BOOT.search(before):
        return boot["s"], float(boot["s"])
    if iso := _ISO.search(before):
        year, month, day = iso["day"].split("-")
        return f"{iso['day']} {iso['time']}", _seconds(year, month, day, iso["time"])
    if wall := _WALL.search(before):
        month = _MONTHS.index(wall["month"]) + 1 if wall["month"] in _MONTHS else 0
        return wall.group(), _seconds(wall["year"] or "2000", str(month), wall["day"], wall["time"])
    return "", None


def _seconds(year: str, month: str, day: str, time: str) -> float | None:
    hour, minute, second = (int(part) for part in time.split(":"))
    try:
        at = datetime(int(year), int(month), int(day), hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return at.timestamp()
