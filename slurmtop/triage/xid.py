"""What an Xid means, whose fault it is at first sight, and what an on-call person does.

Codes and buckets follow NVIDIA's Xid catalogue. A code that is not in the table is told with its
number and class unknown. Only the first event counts: some codes merely follow from others.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from slurmtop.model.gpu import GpuSample, KernelEvent, KernelKind
from slurmtop.triage.xid_table import ROWS


class XidClass(StrEnum):
    APPLICATION = "application"
    """The program is looked at first; the same on one GPU under several users is hardware."""
    HARDWARE = "hardware"
    DRIVER = "driver"
    LINK = "link"
    INFO = "info"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Meaning:
    """``says`` what happened, ``action`` what to do; both short, without a full stop."""

    cls: XidClass
    says: str
    action: str


#: Preemptive cleanup: follows whatever killed the process, once a channel.
_CLEANUP = 45
_RECOVERY = 154
#: A cleanup this long after another event has nothing to do with it.
_FOLLOWS_S = 60.0
_TABLE: Mapping[int, Meaning] = {
    code: Meaning(XidClass(cls), says, action)
    for codes, cls, says, action in ROWS
    for code in codes
}
_FELL = Meaning(
    XidClass.HARDWARE, "fallen off the bus", "drain, reboot node (cold); repeated: replace the GPU"
)


def xid_meaning(code: int) -> Meaning:
    """The meaning of a code; unknown ones are named, never an error."""
    known = _TABLE.get(code)
    if known is not None:
        return known
    return Meaning(XidClass.UNKNOWN, f"Xid {code} (not in the table)", "tell the admins")


def event_meaning(event: KernelEvent) -> Meaning:
    """The meaning of one line of the kernel log, with what its text adds."""
    if event.kind is KernelKind.LOST or event.code is None:
        return _FELL
    if event.kind is KernelKind.SXID:
        fatal = event.severity in ("Fatal", "Always Fatal")
        severity = "severity not told" if event.severity is None else event.severity.casefold()
        return Meaning(
            XidClass.LINK,
            f"NVSwitch error {event.code} ({severity})",
            "drain: all GPUs behind the switch are affected" if fatal else "watch",
        )
    meaning = xid_meaning(event.code)
    if event.code == _RECOVERY and (found := re.findall(r"\(([A-Za-z0-9 ]{1,60})\)", event.text)):
        return replace(meaning, action=found[-1].casefold())
    return meaning


def fold_events(events: Iterable[KernelEvent]) -> tuple[KernelEvent, ...]:
    """The events with cleanups (45) folded under what they follow from on the same GPU."""
    kept: list[KernelEvent] = []
    last: dict[str, int] = {}
    for event in events:
        place = last.get(event.bus_id)
        if event.code == _CLEANUP and event.kind is KernelKind.XID and place is not None:
            first = kept[place]
            if _close(first, event):
                counts = dict(first.follow_ups)
                counts[_CLEANUP] = counts.get(_CLEANUP, 0) + 1
                kept[place] = replace(first, follow_ups=tuple(counts.items()))
                continue
        last[event.bus_id] = len(kept)
        kept.append(event)
    return tuple(kept)


def _close(first: KernelEvent, later: KernelEvent) -> bool:
    if first.clock_s is None or later.clock_s is None:
        return True
    return 0 <= later.clock_s - first.clock_s <= _FOLLOWS_S


@dataclass(frozen=True, slots=True, kw_only=True)
class XidSeen:
    """A code that DCGM holds for a GPU. It came after ``after`` (None: no telling, it stood there
    at first sight) and not later than ``by``."""

    host: str
    gpu: str
    code: int
    after: datetime | None
    by: datetime

    @property
    def says(self) -> str:
        """``last Xid 31, time unknown``."""
        if self.after is None:
            return f"last Xid {self.code}, time unknown"
        return f"Xid {self.code}: {xid_meaning(self.code).says}"

    def during(self, started: datetime) -> bool | None:
        """Did it come while a job that began at ``started`` ran? None where nobody can tell."""
        if self.by < started:
            return False
        return True if self.after is not None and self.after >= started else None


@dataclass(frozen=True, slots=True)
class XidLook:
    """What one look at the gauges gave: all that stand there, and those that are new."""

    at: datetime
    seen: tuple[XidSeen, ...]
    new: tuple[XidSeen, ...]
    watched: frozenset[tuple[str, str]]

    @property
    def old(self) -> tuple[XidSeen, ...]:
        return tuple(one for one in self.seen if one not in self.new)


def look_at_xids(
    samples: Iterable[GpuSample], at: datetime, before: XidLook | None = None
) -> XidLook:
    """Compare DCGM's last codes with the look before. A code is no count: unchanged is not new.

    GPUs without a gauge in this look keep what was known of them.
    """
    known = {(one.host, one.gpu): one for one in before.seen} if before else {}
    watched = set(before.watched) if before else set()
    new: list[XidSeen] = []
    for sample in samples:
        if sample.xid is None:
            continue
        key = (sample.host or "", sample.uuid or f"gpu {sample.dcgm_id}")
        last = known.get(key)
        if sample.xid == 0:
            known.pop(key, None)
        elif last is None or last.code != sample.xid:
            after = before.at if before and key in watched else None
            known[key] = XidSeen(host=key[0], gpu=key[1], code=sample.xid, after=after, by=at)
            new.append(known[key])
        watched.add(key)
    return XidLook(at, tuple(known.values()), tuple(new), frozenset(watched))
