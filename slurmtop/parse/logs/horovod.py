"""Horovod's stall check, in its three forms.

Source: horovod 0.11 to 0.28 (``operations.cc``, ``stall_inspector.cc``), for example::

    … for more than 60 seconds. … Stalled ops: a.weight [ready ranks: 5, 1], b.bias [ready ranks: 5]
    Missing ranks:
    0: [allreduce.a.weight, allreduce.b.bias ...]

The report may be broken over raw lines anywhere. Tensors that the same ranks wait for, or miss,
come as one event.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from slurmtop.model.events.reports import HorovodStall
from slurmtop.model.trace import Event, Where
from slurmtop.parse.logs.block import shown
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.plain import texts

_HEAD = re.compile(
    r"tensors were submitted to be reduced, gathered or broadcasted by subset of ranks"
)
_SECONDS = re.compile(r"for more than (?P<seconds>\d{1,9}(?:\.\d{1,3})?) seconds")
#: Where two raw lines were put together: a number across it may be two, or half of one.
_SEAM = "\x00"
_TENSOR = re.compile(r"\[(?P<kind>ready|missing) ranks:(?P<ranks>[\s\d,\x00]{0,40000})\]")
#: How far in front of the bracket the name of a tensor may begin.
_NAME_CHARS = 320
_MOST_CHARS = 1_000_000
_MISSING = re.compile(r"(?m)^[ \t]{0,40}(?P<rank>\d{1,9})!?: \[(?P<names>[^\]]{0,4000})\]")
_GOES_ON = re.compile(r"\[(?:ready|missing) ranks|^\s*\d{1,9}!?: \[|Missing ranks:|Stalled ops:")
_OVER = re.compile(r"One or more ranks? \(marked by")
_MOST_LINES = 400
_MOST_TENSORS = 16
_SHOWN_CHARS = 400


@dataclass
class _Report:
    lines: list[Message] = field(default_factory=list)
    text: str = ""


class HorovodReader:
    """:class:`HorovodStall` for each set of ranks of each warning."""

    words: tuple[bytes, ...] = (b"submitted to be reduced", b"[ready ranks:", b"[missing ranks:")
    _texts = texts(words)

    def __init__(self) -> None:
        self._report: _Report | None = None

    @property
    def open(self) -> bool:
        return self._report is not None

    def see(self, message: Message) -> Iterable[Event]:
        text = message.text
        if self._report is None and not any(word in text for word in self._texts):
            return
        report = self._report
        if _HEAD.search(text) or (report is None and _TENSOR.search(text)):
            yield from self.finish()
            self._report = _Report([message], text)
            return
        if report is None:
            return
        inside = report.text.rfind("[") > report.text.rfind("]")
        if inside or _GOES_ON.search(text):
            report.lines.append(message)
            report.text += (_SEAM if inside else "\n") + text
            if len(report.lines) < _MOST_LINES and len(report.text) < _MOST_CHARS:
                return
        elif not text.strip() and len(report.lines) < 3:
            return
        yield from self.finish()

    def finish(self) -> Iterable[Event]:
        report, self._report = self._report, None
        if report is not None:
            yield from _stalls(report)


def _stalls(report: _Report) -> Iterator[HorovodStall]:
    seconds = _SECONDS.search(report.text)
    sets: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for found in _TENSOR.finditer(report.text):
        ranks = found["ranks"]
        if _torn(ranks):
            continue
        key = (found["kind"], tuple(sorted(_numbers(ranks.replace(_SEAM, "")))))
        before = report.text[max(0, found.start() - _NAME_CHARS) : found.start()]
        before = before.rpartition("Stalled ops:")[2].rpartition("]")[2].rpartition("\n")[2]
        name = before.replace(_SEAM, "").strip(", ")
        sets.setdefault(key, []).append(name)
    for found in _MISSING.finditer(report.text):
        names = found["names"].replace(_SEAM, "").removesuffix("...").split(",")
        key = ("missing", (int(found["rank"]),))
        sets.setdefault(key, []).extend(name.strip() for name in names)
    at = _place(report)
    for (kind, ranks_of), names in sets.items():
        yield HorovodStall(
            at=at,
            ready=ranks_of if kind == "ready" else (),
            missing=ranks_of if kind == "missing" else (),
            tensors=tuple(names[:_MOST_TENSORS]),
            seconds=float(seconds["seconds"]) if seconds else None,
        )


def _place(report: _Report) -> Where:
    """The head is as long as what may be shown: the telling words stand behind it."""
    at = shown(report.lines)
    telling = _GOES_ON.search(report.text)
    if telling is None or telling.start() < _SHOWN_CHARS // 4:
        return at
    start = max(0, min(telling.start() - 40, report.text.find("Stalled ops:")))
    return replace(at, text=report.text[start : start + _SHOWN_CHARS].replace(_SEAM, "\n"))


def _torn(ranks: str) -> bool:
    """The seam may stand inside a number: ``1`` and ``2``, or ``12``."""
    return re.search(r"\d\x00\d", ranks) is not None


def _numbers(ranks: str) -> set[int]:
    return {int(number) for number in re.findall(r"\d{1,9}", ranks)}
