"""Python's tracebacks and the exceptions that lines quote.

Source: ``traceback.py`` of CPython 3.7 to 3.14, whole or cut, of several ranks between each other,
indented in a table or behind a logger's words, for example::

    [rank3]: Traceback (most recent call last):
    [rank3]:   File "/opt/app/loader.py", line 75, in _load_single_dataset
    [rank3]:     raise ValueError(f"File {local_path} not found.")
    [rank3]: ValueError: File data/train.json not found.

A warning is no exception. One that Python or a logger says it went on after is ``swallowed``.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from enum import IntEnum

from slurmtop.model.events.program import PyException
from slurmtop.model.events.torch import StoreEvent, StoreTrouble
from slurmtop.model.trace import Event
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.torch_words import level, shown
from slurmtop.parse.mask import mask_text

_HEADER = re.compile(r"Traceback \(most recent (?:call|function call) last\):")
_FRAME = re.compile(
    r'(?P<indent>\s*)File "(?P<file>[^"]{1,400})", line (?P<line>\d{1,9})(?:, in '
    r"(?P<name>.{1,200}))?"
)
#: Frames and carets of groups of exceptions stand behind these.
_GROUP_EDGE = re.compile(r"\s{0,40}[|+](?:[ -]|$)")
_GROUP_RULE = re.compile(r"[-+]{3,40} ?(?:\d{1,6}|\.\.\.) ?-{3,60}\s*$|\+?-{10,60}\s*$")

_DOTTED = r"(?:[A-Za-z_]\w{0,80}\.){0,12}"
_KNOWN = (
    r"[A-Z]\w{0,80}(?:Error|Exception|Exit|Interrupt|Timeout|Failure|Failed|Iteration|Abort|OOM)"
    r"|Empty|Full|error|timeout|gaierror|herror|CancelledError|ExceptionGroup|BaseExceptionGroup"
)
_SUBJECT = r"(?P<name>" + _DOTTED + r"(?:" + _KNOWN + r"))(?:\(\w{1,80}\))?"
#: A name that ends in one of Python's own ways, at the head of a line.
_NAMED = re.compile(_SUBJECT + r"(?::(?: (?P<message>.*))?)?\s*$", re.DOTALL)
#: Behind a traceback any dotted or many-humped name will do.
_ANY = re.compile(
    r"(?P<name>(?:[A-Za-z_]\w{0,80}\.){1,12}[A-Z]\w{1,80}|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+)"
    r"(?::(?: (?P<message>.*))?)?\s*$",
    re.DOTALL,
)
#: Inside a line: ``ERROR - Training failed: RuntimeError: bad shape``.
_QUOTED = re.compile(
    r"(?:^|[\s\"'(:\[=>-])(?P<name>"
    + _DOTTED
    + r"(?:[A-Z]\w{0,80}(?:Error|Exception)|KeyboardInterrupt))(?:\(\w{1,80}\))?: (?P<message>.*)$",
    re.DOTALL,
)
#: Words that are settings and columns too (``error: 0.1``): exceptions in tracebacks only.
_VAGUE = frozenset(
    {"error", "timeout", "Empty", "Full", "Exit", "Error", "Exception", "Timeout", "Failed"}
)

#: ``MeanSquaredError: 0.12`` is a metric.
_MEASURED = re.compile(r"[-+]?(?:\d[\d.,]{0,30}(?:e[-+]?\d{1,3})?%?|nan|inf)(?:\s|[,;|]|$)")
_BY_PYTHON = r"Exception ignored in|Exception ignored on|--- Logging error ---"
_IGNORED = re.compile(_BY_PYTHON)
_SWALLOWED = re.compile(
    _BY_PYTHON
    + r"|(?i:\bretry|retrying|skipping|skipped|falling back|ignoring|ignored|could not import"
    r"|continuing"
    r"|failed to import|not critical|non-fatal)"
)
_QUIET_LEVEL = re.compile(
    r"(?:^|[\s\[|(:-])(?:INFO|DEBUG|WARN|WARNING)(?:[\s\]|):,-]|$)|\w{0,40}Warning: "
)
#: ``torch.multiprocessing.spawn`` quotes the traceback of the process that failed.
_SPAWNED = re.compile(r"-- Process (?P<process>\d{1,6}) terminated with the following error:")
_DURING = "During handling of the above exception"
_CAUSE = "direct cause of the following exception"

#: Messages of other writers between two lines of one traceback.
_REACH = 600
_MOST_OPEN = 512
#: Of more tracebacks at once it is not looked for where their code begins.
_FEW_OPEN = 64
_MOST_FRAMES = 8
_MESSAGE_CHARS = 400
_MOST_CODE = 60
_NAME_OF_HOST = frozenset({"gaierror"})
_MEETING = re.compile(r"distributed_c10d|rendezvous")


class _Fate(IntEnum):
    """What is told before a traceback about the life of its process."""

    OPEN = 0
    HEDGED = 1
    SWALLOWED = 2


class _Trace:
    """The traceback of one stream."""

    def __init__(self, message: Message, indent: int, *, fate: _Fate, chain: int) -> None:
        self.message = message
        self.indent = indent
        self.fate = fate
        self.chain = chain
        self.frames: list[str] = []
        self.headers = 1
        self.last_order = message.at.order
        self.grouped = False
        self.process: int | None = None
        self.fresh = True
        """No exception of it was read yet, so that its end is still missing."""

    def add(self, found: re.Match[str]) -> None:
        if not self.frames:
            # A table indents all but the header: the frames tell the depth.
            self.indent = max(len(found["indent"]) - 2, 0)
        name = found["name"]
        file = found["file"].replace("\\", "/").rpartition("/")[2]
        self.frames.append(f"{file}:{found['line']}" + (f" in {name.strip()}" if name else ""))
        del self.frames[:-_MOST_FRAMES]


class PythonReader:
    """Reads tracebacks; see :class:`~slurmtop.parse.logs.line.Reader`."""

    words: tuple[bytes, ...] = (
        b"Traceback (most recent",
        b'File "',
        b"Error",
        b"Exception",
        b"KeyboardInterrupt",
        b"StopIteration",
        b"SystemExit",
        b"Logging error",
        b"During handling of",
        b"direct cause of",
        b"terminated with the following",
        b"WARNING",
        b"etry",
        b"gnored",
        b"gnoring",
        b"kipping",
    )

    def __init__(self) -> None:
        self._traces: OrderedDict[str, _Trace] = OrderedDict()
        self._ended: dict[str, tuple[int, _Fate]] = {}
        self._linked: set[str] = set()
        self._before: Message | None = None
        self._spawned: dict[str, tuple[int, Message]] = {}

    @property
    def open(self) -> bool:
        return bool(self._traces)

    @property
    def deep(self) -> int | None:
        """Blanks in front of code in all tracebacks that go on; None where that is not plain."""
        traces = self._traces.values()
        if not 0 < len(traces) <= _FEW_OPEN or any(trace.grouped for trace in traces):
            return None
        return max(trace.indent for trace in traces) + 2

    def see(self, message: Message) -> Iterable[Event]:
        yield from self._expire(message.at.order)
        yield from self._read(message)
        self._before = message

    def finish(self) -> Iterable[Event]:
        traces = list(self._traces.values())
        self._traces.clear()
        out: list[Event] = []
        for trace in traces:
            out += _cut(trace)
        return sorted(out, key=lambda event: event.at.order)

    def _expire(self, order: int) -> Iterator[Event]:
        while self._traces:
            stream, trace = next(iter(self._traces.items()))
            if order - trace.last_order <= _REACH and len(self._traces) <= _MOST_OPEN:
                return
            del self._traces[stream]
            yield from _cut(trace)

    def _read(self, message: Message) -> Iterator[Event]:
        text = message.text.rstrip(" \t│┃|")
        trace = self._traces.get(message.stream)
        grouped = _GROUP_EDGE.match(text) if trace is not None and trace.grouped else None
        if grouped is not None:
            text = " " * grouped.end() + text[grouped.end() :]
        header = _HEADER.search(text)
        if header is not None:
            yield from self._begin(message, text, header, trace)
            return
        if (spawned := _SPAWNED.search(text)) is not None and len(self._spawned) < _MOST_OPEN:
            self._spawned[message.stream] = int(spawned["process"]), message
            return
        if _DURING in text or _CAUSE in text:
            if len(self._linked) < _MOST_OPEN:
                self._linked.add(message.stream)
            return
        if trace is None:
            frame = _FRAME.match(text)
            if frame is not None:
                trace = _Trace(message, max(len(frame["indent"]) - 2, 0), fate=_Fate.OPEN, chain=0)
                trace.add(frame)
                self._traces[message.stream] = trace
                return
            yield from _lone(message, text)
            return
        yield from self._go_on(message, text, trace)

    def _begin(
        self, message: Message, text: str, header: re.Match[str], trace: _Trace | None
    ) -> Iterator[Event]:
        indent = len(text) - len(text.lstrip())
        grouped = "Exception Group Traceback" in text
        if trace is not None and trace.fresh and not trace.frames and not trace.grouped:
            # Two writers share this stream and began at once.
            trace.headers += 1
            return
        chain, before = 0, _Fate.OPEN
        if message.stream in self._linked:
            self._linked.discard(message.stream)
            last, before = self._ended.get(message.stream, (-1, _Fate.OPEN))
            chain = last + 1
        elif trace is not None and trace.fresh and not trace.grouped:
            yield from _cut(trace)
        fate = max(before, self._fate(message, text[: header.start()]))
        new = _Trace(message, indent, fate=fate, chain=chain)
        new.grouped = grouped or (trace is not None and trace.grouped)
        if message.stream in self._spawned:
            # The line that tells the process is the better one to show of a cut traceback.
            new.process, new.message = self._spawned.pop(message.stream)
        self._traces[message.stream] = new
        self._traces.move_to_end(message.stream)

    def _fate(self, message: Message, before: str) -> _Fate:
        """Do the words in front of a traceback say that the program goes on?

        Those of its own message do, and Python's. A line before it may be of another matter.
        """
        if level(message) in ("W", "I", "D") or _SWALLOWED.search(before):
            return _Fate.SWALLOWED
        if _QUIET_LEVEL.search(before):
            return _Fate.SWALLOWED
        last = self._before
        if last is None or last.stream != message.stream or last.text.startswith(" "):
            return _Fate.OPEN
        if message.at.order - last.at.order > 1:
            return _Fate.OPEN
        if _IGNORED.search(last.text):
            return _Fate.SWALLOWED
        hints = _SWALLOWED.search(last.text) or _QUIET_LEVEL.search(last.text)
        return _Fate.OPEN if hints is None else _Fate.HEDGED

    def _go_on(self, message: Message, text: str, trace: _Trace) -> Iterator[Event]:
        stripped = text.strip()
        if not stripped:
            return
        frame = _FRAME.match(text)
        if frame is not None:
            if not trace.fresh:
                # A traceback whose head is not here.
                trace.frames, trace.fresh, trace.headers = [], True, 1
            trace.last_order = message.at.order
            trace.add(frame)
            self._traces.move_to_end(message.stream)
            return
        indent = len(text) - len(text.lstrip())
        if indent > trace.indent + 1 or (trace.grouped and _GROUP_RULE.match(stripped)):
            if trace.fresh and message.at.order - trace.last_order < _MOST_CODE:
                trace.last_order = message.at.order
            return
        found = _NAMED.match(stripped) or (_ANY.match(stripped) if trace.frames else None)
        if found is None:
            if not trace.fresh:
                self._traces.pop(message.stream, None)
            yield from _lone(message, text)
            return
        yield from self._end(message, trace, found, text)

    def _end(
        self, message: Message, trace: _Trace, found: re.Match[str], text: str
    ) -> Iterator[Event]:
        name = found["name"]
        if not trace.fresh and name in _VAGUE:
            return
        is_group = name.endswith("ExceptionGroup")
        yield PyException(
            at=shown(message, text.find(name)),
            name=name,
            message=_words(found["message"]),
            frames=tuple(trace.frames),
            chain=trace.chain + is_group,
            swallowed=trace.fate is _Fate.SWALLOWED,
            hedged=trace.fate is _Fate.HEDGED,
            process=trace.process,
        )
        if name.rpartition(".")[2] in _NAME_OF_HOST and _MEETING.search(" ".join(trace.frames)):
            yield StoreEvent(at=message.at, kind=StoreTrouble.NO_HOST)
        self._ended[message.stream] = (trace.chain, trace.fate)
        if len(self._ended) > _MOST_OPEN:
            self._ended.pop(next(iter(self._ended)))
        trace.last_order = message.at.order
        trace.headers -= 1
        if trace.headers < 1:
            trace.fresh = False
            if not trace.grouped:
                self._traces.pop(message.stream, None)


def _words(message: str | None) -> str:
    """What an exception says. Masked before it is cut: half a secret is known for none, and what
    stands behind it is the same in a bundle."""
    return mask_text((message or "").strip())[:_MESSAGE_CHARS]


def _cut(trace: _Trace) -> Iterator[Event]:
    """A traceback without its end."""
    if trace.fresh and (trace.frames or not trace.grouped):
        yield PyException(
            at=trace.message.at,
            name="",
            message="",
            frames=tuple(trace.frames),
            chain=trace.chain,
            swallowed=trace.fate is _Fate.SWALLOWED,
            hedged=trace.fate is _Fate.HEDGED,
            cut=True,
            process=trace.process,
        )


def _lone(message: Message, text: str) -> Iterator[Event]:
    """An exception that stands in a line by itself, or that a line of a log quotes."""
    stripped = text.strip()
    found = _NAMED.match(stripped)
    if (
        found is not None
        and found["name"] not in _VAGUE
        and (found["message"] or len(stripped) < 120)
    ):
        quoted = False
    else:
        found = _QUOTED.search(stripped)
        if found is None or found["name"] in _VAGUE:
            return
        quoted = True
    if _MEASURED.match((found["message"] or "").strip()) is not None:
        return
    if stripped.startswith("class "):
        return
    before = stripped[: found.start("name")]
    swallowed = level(message) in ("W", "I", "D") or (
        quoted and (_QUIET_LEVEL.search(before) or _SWALLOWED.search(stripped)) is not None
    )
    yield PyException(
        at=shown(message, max(text.find(found["name"]), 0)),
        name=found["name"],
        message=_words(found["message"]),
        swallowed=swallowed,
    )
