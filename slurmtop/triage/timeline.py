"""What all logs said, in one row of time: their clocks brought together, one line an event.

A line without a stamp stands at the moment of the last stamped one before it in its file, marked
``~``. Files without any stamp, and kernel lines that only count seconds since the boot, follow at
the end, in their own order: nothing says when they were written. What many ranks said alike at
the same point is one line with a count.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
from slurmtop.model.text import cell_width, fit, visible
from slurmtop.model.trace import Event, Where
from slurmtop.triage.picture import Picture

#: How a run is set up, not what happened.
_SET_UP = (Channel, Connected, InitTimings, NcclAddress, NcclNetwork, NcclSetting, NcclVersion)
_DIGITS = re.compile(r"(?:0x)?[0-9a-f]*[0-9][0-9a-f]*|\d+")
_SHAPE_CHARS = 200
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
    seen: set[tuple[str, int, str]] = set()
    for event in picture.traces.events:
        moment = picture.moment(event.at)
        if moment is not None:
            last[event.at.source] = moment
        if isinstance(event, _SET_UP):
            continue
        key = (event.at.source, event.at.order, type(event).__name__)
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
            out[-1] = _Entry(
                before.at,
                before.moment,
                before.exact,
                before.kind,
                before.who,
                before.shape,
                before.count + 1,
            )
        else:
            out.append(entry)
    return out


def _alike(one: _Entry, other: _Entry) -> bool:
    if (one.kind, one.shape) != (other.kind, other.shape):
        return False
    near = one.moment is None or other.moment is None or other.moment - one.moment <= _FOLD_S
    return near and one.who != other.who


def _line(clock: str, entry: _Entry, width: int) -> str:
    more = f" (and {entry.count - 1} alike)" if entry.count > 1 else ""
    text = visible(" ".join(entry.at.text.split()))
    who = visible(entry.who)
    head = f"{clock:<{_STAMP_CHARS}}{who}: " if clock else f"{who}: "
    room = width - cell_width(more)
    whole = head + text
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
