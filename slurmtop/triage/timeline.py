"""What all logs said, in one row of time: their clocks brought together, one line an event.

A line without a stamp stands at the moment of the last stamped one before it in its file, marked
``~``. Files without any stamp, and kernel lines that only count seconds since the boot, follow at
the end, in their own order: nothing says when they were written. What many ranks said alike at
the same point is one line with a count.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from slurmtop.model.events.nccl import (
    Channel,
    Connected,
    InitTimings,
    NcclAddress,
    NcclNetwork,
    NcclSetting,
    NcclVersion,
)
from slurmtop.model.events.torch import CudaError
from slurmtop.model.text import cell_width, fit, visible
from slurmtop.model.trace import Event, Where
from slurmtop.triage.picture import Picture

#: How a run is set up, not what happened.
_SET_UP = (Channel, Connected, InitTimings, NcclAddress, NcclNetwork, NcclSetting, NcclVersion)
_DIGITS = re.compile(r"(?:0x)?[0-9a-f]*[0-9][0-9a-f]*|\d+")
#: ``[rank12]:``, and torchrun's name for the process on its node.
_TAG = re.compile(r"\[(?:default\d{1,5}|rank ?(?P<rank>\d{1,7}))\]: ?")
#: ``[E817 17:40:34.227…``, ``2031-05-05 10:40:07,118 ``.
_STAMP = re.compile(
    r"\[?[IWEF]\d{3,4} \d\d:\d\d:\d\d(?:\.\d{1,9})? (?:[\w.]{1,60}:\d{1,6}\] )?"
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?:? "
)
#: ``[PG ID 0 PG GUID 0(default_pg) Rank 12] ``.
_GROUP = re.compile(r"\[(?:PG [^\]\n]{1,80} )?Rank (?P<rank>\d{1,7})\] {1,2}")
_SHAPE_CHARS = 200
_TELLING_CHARS = 40
#: Lines that lie further apart are two events, however alike.
_FOLD_S = 60.0
_STAMP_CHARS = 13


@dataclass(frozen=True, slots=True)
class _Entry:
    at: Where
    moment: float | None
    exact: bool
    kind: str
    who: str
    shape: str
    telling: str = ""
    """What CUDA said, where the line is long and begins with other words."""
    count: int = 1


def timeline_lines(picture: Picture, *, width: int = 80) -> tuple[str, ...]:
    """One line an event, safe to print; a line with the date where the day changes."""
    entries = list(_entries(picture))
    timed = sorted((e for e in entries if e.moment is not None), key=lambda e: e.moment or 0.0)
    rest = [e for e in entries if e.moment is None]
    out: list[str] = []
    day = ""
    for entry in _folded(timed):
        assert entry.moment is not None
        date, clock = _clock(entry.moment)
        if date != day:
            out.append(f"-- {date}{_zone(picture, entry.at)}")
            day = date
        out.append(_line(f"{clock}{' ' if entry.exact else '~'}", entry, width))
    if rest:
        out.append("-- no time told: in each file's order")
        out.extend(_line("", entry, width) for entry in _folded(rest))
    if picture.offsets_s:
        out.append("-- clocks moved onto the others")
        out.extend(
            fit(f"{visible(name)}: {seconds:+.1f} s", width).rstrip()
            for name, seconds in sorted(picture.offsets_s.items())
            if seconds
        )
    return tuple(out) if out else ("nothing that a rule could use was said",)


def _entries(picture: Picture) -> Iterator[_Entry]:
    """The events that tell what happened, each line once, with the moment it stands at."""
    last: dict[str, float] = {}
    seen: set[tuple[str, int]] = set()
    cuda = {(one.at.source, one.at.order): one.text for one in picture.traces.of(CudaError)}
    for event in picture.traces.events:
        moment = picture.moment(event.at)
        if moment is not None:
            last[event.at.source] = moment
        if isinstance(event, _SET_UP):
            continue
        # One line may hold two events: it is one thing that was said.
        key = (event.at.source, event.at.order)
        if key in seen:
            continue
        seen.add(key)
        stands = moment if moment is not None else last.get(event.at.source)
        yield _Entry(
            at=event.at,
            moment=stands,
            exact=moment is not None,
            kind=_kind(event),
            who=_who(picture, event.at),
            shape=_DIGITS.sub("#", event.at.text[:_SHAPE_CHARS]),
            telling=" ".join(cuda.get(key, "")[:_TELLING_CHARS].split()),
        )


def _kind(event: Event) -> str:
    """``NcclWarn`` as ``nccl warn``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(event).__name__).lower()


def _who(picture: Picture, at: Where) -> str:
    rank, host = picture.rank_of(at), picture.host_of(at)
    words = [f"rank {rank}" if rank is not None else "", host or at.label or ""]
    return " ".join(word for word in words if word) or at.source.rpartition("/")[2]


def _folded(entries: Iterable[_Entry]) -> list[_Entry]:
    """Neighbours of one kind and shape as one, with how many there were."""
    out: list[_Entry] = []
    for entry in entries:
        before = out[-1] if out else None
        if before is not None and _alike(before, entry):
            out[-1] = replace(before, count=before.count + 1)
        else:
            out.append(entry)
    return out


def _alike(one: _Entry, other: _Entry) -> bool:
    if (one.kind, one.shape) != (other.kind, other.shape):
        return False
    near = one.moment is None or other.moment is None or other.moment - one.moment <= _FOLD_S
    return near and one.who != other.who


def _said(entry: _Entry) -> str:
    """The line without what stands in front of it already: its writer and its time."""
    text = entry.at.text
    while (tag := _TAG.match(text)) is not None:
        number = tag["rank"]
        if number is not None and not _is_told(entry, number):
            break
        text = text[tag.end() :]
    stamp = _STAMP.match(text) if entry.exact else None
    told = text if stamp is None else text[stamp.end() :]
    group = _GROUP.match(told) if stamp is not None else None
    if group is not None and _is_told(entry, group["rank"]):
        told = told[group.end() :]
    return told if told.strip() else entry.at.text


def _is_told(entry: _Entry, rank: str) -> bool:
    return entry.who.split(" ")[:2] == ["rank", rank]


def _line(clock: str, entry: _Entry, width: int) -> str:
    more = f" (and {entry.count - 1} alike)" if entry.count > 1 else ""
    text = visible(" ".join(_said(entry).split()))
    who = visible(entry.who)
    head = f"{clock:<{_STAMP_CHARS}}{who}: " if clock else f"{who}: "
    room = width - cell_width(more)
    whole = head + text
    place = text.find(entry.telling) if entry.telling else 0
    if place > 0 and cell_width(whole) > room:
        whole = f"{head}… {text[place:]}"
    return (whole if cell_width(whole) <= room else fit(whole, room).rstrip()) + more


def _clock(moment: float) -> tuple[str, str]:
    try:
        when = datetime.fromtimestamp(moment, UTC)
    except (OverflowError, ValueError, OSError):
        return "a time that no calendar has", ""
    return f"{when:%Y-%m-%d}", f"{when:%H:%M:%S}.{when.microsecond // 1000:03d}"


def _zone(picture: Picture, at: Where) -> str:
    """Only a line that tells its zone is known to be in UTC."""
    return " (UTC)" if picture.time_of(at) is not None else ""
