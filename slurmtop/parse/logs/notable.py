"""Lines that a person would want to see, though no reader knows what they mean.

Source: any log; a line that calls itself a warning or an error, or tells that something failed::

    WARNING: destroy_process_group() was not called before program exit
    tcpxCommProgress: rx ctrl timeout cnt 7331502, nanos 10000000585

They are shown where nothing else explains a run, and are evidence of nothing by themselves.
"""

import re
from collections.abc import Iterable

from slurmtop.model.events.program import Notable
from slurmtop.model.trace import Event
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.plain import texts

_ERROR = re.compile(
    r"\b(?:ERROR|FATAL|CRITICAL|SEVERE)\b|(?i:\berror\b(?!\s?(?:rate|=|:\s?[-+\d]))|\bfail(?:ed|ure|s)\b"
    r"|\btimed? ?out\b|\bexception\b|\babort|\bkill(?:ed|ing)\b|\bstuck\b|\bhang\b|\bsignal\b)"
)
_WARNING = re.compile(
    r"\bWARN(?:ING)?\b|\w*Warning\b|(?i:\bcould not\b|\bcannot\b|\bunable to\b|\bretry|\bskipp)"
)
#: Numbers apart, a line is told once.
_NUMBERS = re.compile(r"\d+")
#: Kept of each kind: the first ones, and the newest.
_FIRST = 3
_LAST = 3
_MOST_FORMS = 2_000


class NotableReader:
    """Keeps a few notable lines of a source until it ends."""

    words: tuple[bytes, ...] = (
        b"ERROR",
        b"FATAL",
        b"CRITICAL",
        b"rror",
        b"ailed",
        b"ailure",
        b"imeout",
        b"imed out",
        b"xception",
        b"bort",
        b"illed",
        b"illing",
        b"stuck",
        b" hang",
        b"signal",
        b"WARN",
        b"arning",
        b"ould not",
        b"annot",
        b"nable to",
        b"etry",
        b"kipp",
    )
    open = False
    _texts = texts(words)

    def __init__(self) -> None:
        self._forms: set[str] = set()
        self._first: dict[bool, list[Notable]] = {True: [], False: []}
        self._last: dict[bool, list[Notable]] = {True: [], False: []}

    def see(self, message: Message) -> Iterable[Event]:
        text = message.text
        if not any(word in text for word in self._texts):
            return ()
        bad = _ERROR.search(text) is not None
        if not bad and _WARNING.search(text) is None:
            return ()
        form = _NUMBERS.sub("", text[:160])
        if form in self._forms:
            return ()
        if len(self._forms) < _MOST_FORMS:
            self._forms.add(form)
        event = Notable(at=message.at, error=bad)
        if len(self._first[bad]) < _FIRST:
            self._first[bad].append(event)
        else:
            self._last[bad] = [*self._last[bad], event][-_LAST:]
        return ()

    def finish(self) -> Iterable[Event]:
        kept = [one for bad in (True, False) for one in self._first[bad] + self._last[bad]]
        return sorted(kept, key=lambda event: event.at.order)
