"""The text of PyTorch's flight recorder analyser (``torchfrtrace``, before ``fr_trace.py``).

Source: ``torch/distributed/flight_recorder`` (torch 2.7 on) and ``tools/flight_recorder`` (2.4 to
2.6), for example::

    Not all ranks joining collective: sequence number: 31117
    missing ranks: {3, 4, 5, 6, 7}

A block begins with such a head and goes on with one ``name: value`` a line, then its stack.
"""

import re
from collections.abc import Iterable, Iterator

from slurmtop.model.events.reports import FlightReport
from slurmtop.model.trace import Event
from slurmtop.parse.logs.block import shown
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.plain import texts

_NUMBER = r"(?:\D{0,24}?(?P<seq>\d{1,19}))?"
_HEAD = re.compile(
    rf"Not all ranks joining collective(?! for group){_NUMBER}"
    rf"|Collective(?: sequence number:)? (?P<seq2>\d{{1,19}}) (?:at entry \d{{1,19}} |has )errors"
    r"|Input/output mismatch in the collective\D{0,24}?(?P<seq3>\d{1,19})"
)
#: The first form: all on one line, without a number.
_FIRST_FORM = re.compile(
    r"Not all ranks joining collective for group (?P<group>\S{0,200}?) collective (?P<op>\S{1,100})"
    r"\s{1,4}Missing ranks are (?P<missing>\{[\d, ]{0,20000}\})"
)
_UNDECIDED = re.compile(r"cannot decide what's wrong with this collective entry")
_FIELD = re.compile(
    r"\s*(?P<name>internal record id|group info|collective|missing ranks|input sizes|output sizes"
    r"|total input numel|total output numel|world size|expected ranks|collective state"
    r"|error (?:msg|message)|collective stack trace|input dtypes|output dtypes):"
    r"\s*(?P<value>.{0,40000})",
)
_CULPRIT = re.compile(
    r"Culprit rank (?P<rank>\d{1,9}); Error type: (?P<type>[A-Z_]{3,60})"
    r"(?P<text>(?:(?!, Culprit rank).){0,2000})"
)
_FRAME = re.compile(r"\s*(?P<frame>[\w<>.]{1,200} at \S.{0,500}:\d{1,9})\s*$")
_MOST_FRAMES = 64
_MOST_FIELDS = 64


class FlightTextReader:
    """:class:`FlightReport` for each block."""

    words: tuple[bytes, ...] = (
        b"ranks joining collective",
        b"Collective ",
        b"Input/output mismatch in",
        b"cannot decide what",
        b"Culprit rank",
    )
    _texts = texts(words)

    def __init__(self) -> None:
        self._fresh()

    def _fresh(self) -> None:
        self._head: Message | None = None
        self._seq: int | None = None
        self._fields: dict[str, tuple[Message, str]] = {}
        self._frames: list[str] = []
        self._strangers = 0

    @property
    def open(self) -> bool:
        return self._head is not None

    def see(self, message: Message) -> Iterable[Event]:
        text = message.text
        if self._head is None and not any(word in text for word in self._texts):
            return
        if found := _FIRST_FORM.search(text):
            yield from self._close()
            yield FlightReport(
                at=message.at,
                group=found["group"],
                op=found["op"],
                missing=_ranks(found["missing"]),
            )
        elif found := _HEAD.search(text):
            yield from self._close()
            self._head = message
            number = found["seq"] or found["seq2"] or found["seq3"]
            self._seq = int(number) if number else None
        elif _UNDECIDED.search(text):
            yield from self._close()
            yield FlightReport(at=message.at, undecided=True)
        elif self._head is not None:
            yield from self._goes_on(message)
        elif found := _CULPRIT.search(text):
            # The head was cut off.
            yield FlightReport(at=message.at, culprits=_culprits(text))

    def finish(self) -> Iterable[Event]:
        yield from self._close()

    def _goes_on(self, message: Message) -> Iterator[Event]:
        text = message.text
        if (found := _FIELD.match(text)) and len(self._fields) < _MOST_FIELDS:
            self._fields.setdefault(found["name"], (message, found["value"].strip()))
            self._strangers = 0
            if found["name"] == "collective stack trace" and found["value"].strip():
                self._frame(found["value"])
        elif self._frame(text):
            self._strangers = 0
        elif text.strip():
            self._strangers += 1
            if self._strangers > 2 or "collective stack trace" in self._fields:
                yield from self._close()

    def _frame(self, text: str) -> bool:
        found = _FRAME.match(text)
        if found is not None and len(self._frames) < _MOST_FRAMES:
            self._frames.append(found["frame"])
        return found is not None

    def _close(self) -> Iterator[Event]:
        head, fields = self._head, self._fields
        seq, frames = self._seq, tuple(self._frames)
        self._fresh()
        if head is None:
            return
        telling = [
            fields[name][0]
            for name in ("missing ranks", "error msg", "error message")
            if name in fields
        ]
        values = {name: value for name, (_, value) in fields.items()}
        expected = values.get("expected ranks", "")
        world = values.get("world size", "")
        if expected.isdigit():
            # Older ones print how many are expected under the name of which.
            world, expected = expected, ""
        yield FlightReport(
            at=shown([head, *telling]),
            seq=seq,
            group=values.get("group info"),
            op=values.get("collective"),
            missing=_ranks(values["missing ranks"]) if "missing ranks" in values else None,
            expected=_ranks(expected),
            world=int(world) if world.isdigit() and len(world) < 10 else None,
            state=values.get("collective state"),
            culprits=_culprits(values.get("error msg") or values.get("error message") or ""),
            frames=frames,
        )


def _ranks(text: str) -> tuple[int, ...]:
    """``{0, 1, 2}``; a list that is cut keeps only the numbers that are surely whole."""
    if not text.rstrip().endswith("}"):
        text = text.rpartition(",")[0]
    return tuple(sorted({int(number) for number in re.findall(r"\d{1,9}", text)}))


def _culprits(text: str) -> tuple[tuple[int, str, str], ...]:
    return tuple(
        (int(found["rank"]), found["type"], found["text"].lstrip(", ").strip()[:400])
        for found in _CULPRIT.finditer(text)
    )
