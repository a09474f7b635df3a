"""One log to traces: raw lines made whole, their prefixes peeled, shown to every reader.

Source: any log of a job, in blocks of any size, for example::

    reader = SourceReader("slurm-4711.out")
    reader.feed(head), reader.skip(gap), reader.feed(tail)
    traces = reader.finish(size=total)

Most lines are never decoded: a look for the readers' words in the bytes passes them over. What is
kept is bounded, however long the log is. How the bytes were cut into blocks makes no difference.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from slurmtop.model.events.nccl import Call, CommCalls
from slurmtop.model.trace import Event, Source, Traces, Where
from slurmtop.parse.logs.calls import CallLines, call_in
from slurmtop.parse.logs.code_lines import is_code, is_frame
from slurmtop.parse.logs.forms import Forms
from slurmtop.parse.logs.gate import Gate, Mask
from slurmtop.parse.logs.keeping import Attempts, Ends, Events, Hosts, Orders
from slurmtop.parse.logs.line import Message, Reader
from slurmtop.parse.logs.mend import MOST_PARTS, goes_on, joined, may_go_on, pieces
from slurmtop.parse.logs.model_words import is_of_a_model
from slurmtop.parse.logs.names import host_in_name, rank_in_name
from slurmtop.parse.logs.peel import Prefix, inherit, peel, shown_text
from slurmtop.parse.logs.program import ProgramReader
from slurmtop.parse.logs.python import PythonReader
from slurmtop.parse.logs.raws import Block, Raw, RawLines
from slurmtop.parse.logs.readers import READERS
from slurmtop.parse.logs.shape import NO_SHAPE, Shape, shape_of_raw, width_of, without_border

#: Read at a time, whatever the size of what is fed.
_CHUNK = 1 << 19
#: Lines of a block by which its shape is told.
_SAMPLE = 100
_MOST_GATES = 8
#: Behind one of these a glued message begins with its own words.
_ENDS_WORDS = "])>|}"
#: A file of more lines than this was not copied from a terminal.
_MOST_PASTED = 3_000


class SourceReader:
    """Reads one source. ``year`` is that of its file, for stamps without one."""

    def __init__(
        self,
        name: str,
        *,
        year: int | None = None,
        readers: Sequence[Callable[[], Reader]] | None = None,
    ) -> None:
        self._name = name
        self._readers = [make() for make in (READERS if readers is None else readers)]
        self._gate = _gate_of(self._readers)
        self._raws = RawLines()
        self._parts: list[bytes] = []
        self._waiting = 0
        self._shape: Shape = replace(NO_SHAPE, year=year)
        self._held: list[Raw] = []
        self._open = [at for at, reader in enumerate(self._readers) if reader.open]
        self._all: Mask = tuple(range(len(self._readers)))
        self._ends = Ends()
        self._events = Events()
        self._attempts = Attempts()
        self._orders = Orders()
        self._calls = CallLines()
        self._hosts = Hosts()
        self._read = 0
        self._unread: list[tuple[int, int]] = []
        self._cut = False

    def feed(self, data: bytes) -> None:
        """The next bytes of the file."""
        self._read += len(data)
        at = 0
        # A part that may be the last one waits: then it is read with its end in sight.
        while (missing := _CHUNK - self._waiting) < len(data) - at:
            self._parts.append(data[at : at + missing])
            at += missing
            self._take(self._raws.feed(self._taken()), final=False)
        self._parts.append(data[at:])
        self._waiting += len(data) - at

    def _taken(self) -> bytes:
        whole = b"".join(self._parts)
        self._parts, self._waiting = [], 0
        return whole

    def skip(self, count: int, *, number: int | None = None) -> None:
        """``count`` bytes are left unread; ``number`` is the line behind them, if it is known."""
        if count <= 0:
            return
        self._flush()
        self._unread.append((self._raws.end, count))
        self._raws.skip(count, number)

    def finish(self, **source_fields: Any) -> Traces:
        """All that the source told. ``source_fields`` go into its :class:`Source` as they are."""
        self._flush()
        for reader in self._readers:
            self._keep(reader.finish())
        self._keep(self._comm_calls())
        first, last, last_stamped = self._ends.told(self._where_of)
        fields: dict[str, Any] = {
            "read_bytes": self._read,
            "lines": self._raws.count,
            "unread": tuple(self._unread),
            "cut": self._cut,
            "rank": rank_in_name(self._name),
            "host": host_in_name(self._name),
            "first": first,
            "last": last,
            "last_stamped": last_stamped,
            "tail": self._ends.tail(self._where_of),
            "notable": self._ends.notable(self._where_of),
            "dropped_events": self._events.dropped,
        }
        source = Source(name=self._name, **{**fields, **source_fields})
        return Traces((source,), self._events.all())

    def _flush(self) -> None:
        """All that was fed so far is read to its end, an unfinished line too."""
        blocks = self._raws.feed(self._taken(), final=True)
        self._cut = self._raws.unfinished
        self._take(blocks + self._raws.finish(), final=True)

    def _take(self, blocks: list[Block], *, final: bool) -> None:
        for at, block in enumerate(blocks, 1):
            self._learn(block)
            self._ends.see(block)
            forms = Forms(block.lines, block.take_text())
            wanted = self._calls.take(block, forms)
            lines = _lines_of(self._held, block, wanted, forms)
            self._read_lines(lines, final=final and at == len(blocks))
        if final and self._held:
            held = [raw.data for raw in self._held]
            self._read_lines(_Lines(self._held, held, Forms(held)), final=True)

    def _learn(self, block: Block) -> None:
        lines = block.lines
        step = max(1, len(lines) // _SAMPLE)
        sample = [line for at in range(0, len(lines), step) if (line := block.last_state(at))]
        shape = shape_of_raw(sample, self._shape)
        width = None
        if block.serial + len(lines) <= _MOST_PASTED:
            width = width_of(lines) if block.serial == 0 else self._shape.width
        self._shape = replace(shape, width=width)

    def _read_lines(self, lines: "_Lines", *, final: bool) -> None:
        """Show what is telling; the last lines wait for what they may go on in."""
        masks = self._gate.pick(lines.data, lines.forms)
        telling = list(masks)
        stop = len(lines.data) - (0 if final else MOST_PARTS)
        every = self._shape.width is not None
        code = -1
        at = 0
        while at < stop:
            if not every and not self._open:
                place = bisect_left(telling, at)
                at = telling[place] if place < len(telling) else stop
                if at >= stop:
                    break
            if code == at and at not in masks and self._is_code(lines.data[at], lines.data[at - 1]):
                at += 1
                code = at
            elif lines.data[at].strip():
                count = self._read_record(lines, at, self._all if every else masks.get(at, ()))
                at += count
                # Below a frame of a traceback stands its code.
                code = at if count == 1 and not every and is_frame(lines.data[at - 1]) else -1
            else:
                at += 1
        self._held = [lines.raw(later) for later in range(max(at, 0), len(lines.data))]

    def _is_code(self, line: bytes, before: bytes) -> bool:
        """Half of the lines of a traceback are code, and tell nobody anything."""
        if len(self._open) != 1 or not isinstance(
            reader := self._readers[self._open[0]], PythonReader
        ):
            return False
        deep = reader.deep
        return deep is not None and is_code(line, before, deep)

    def _read_record(self, lines: "_Lines", at: int, mask: Mask) -> int:
        """Show the record that begins here; the number of lines that it takes."""
        raw = lines.raw(at)
        text = without_border(raw.text(), self._shape)
        parts = [text]
        while len(parts) < MOST_PARTS and at + len(parts) < len(lines.data):
            if not may_go_on(text, self._shape):
                break
            later = lines.raw(at + len(parts))
            part = without_border(later.text(), self._shape)
            if later.serial != raw.serial + len(parts) or not goes_on(text, part, self._shape):
                break
            parts.append(part)
            text = f"{text}\n{part}"
        self._orders.begin(raw.place)
        if is_of_a_model(text):
            mask = ()
        for message in self._messages(raw, parts):
            message = self._attempts.seen(message)
            shown = sorted({*mask, *self._open}) if self._open else mask
            for index in shown:
                self._keep(self._readers[index].see(message))
            self._open = [at for at in shown if self._readers[at].open]
        self._orders.more(1 - len(parts))
        return len(parts)

    def _messages(self, raw: Raw, parts: list[str]) -> Iterable[Message]:
        """The messages of one line; the last of them goes on in the further parts."""
        text = parts[0]
        outer: Prefix | None = None
        for start, end, told in pieces(text, self._shape):
            if outer is not None:
                self._orders.more(1)
            more = parts[1:] if end == len(text) else []
            whole = joined([text[start:end], *more], self._shape) if more else text[start:end]
            prefix = peel(whole, self._shape) if told is None or more else told
            if outer is not None:
                inherit(prefix, outer, whole)
                if text[start - 1] not in _ENDS_WORDS:
                    self._hosts.glued(prefix)
            else:
                self._hosts.seen(prefix.host)
            shown = shown_text(text[start:end], more, prefix)
            message = self._message(raw, whole, prefix, shown)
            outer = outer or prefix
            if message.text.strip():
                yield message

    def _message(self, raw: Raw, text: str, prefix: Prefix, shown: str) -> Message:
        rest = text[prefix.end :]
        message = Message(
            text=rest.rstrip(),
            stream=" ".join(prefix.tags),
            at=self._where(raw, prefix, shown),
            indented=rest[:1].isspace(),
            head=prefix.head,
        )
        self._ends.stamped(message.at)
        return message

    def _where(self, raw: Raw, prefix: Prefix, text: str) -> Where:
        return Where(
            source=self._name,
            line=raw.number,
            offset=raw.offset,
            order=(order := self._orders.of(raw.place)),
            text=text,
            rank=prefix.rank,
            rank_from=prefix.rank_from,
            local_rank=prefix.local_rank,
            task=prefix.task,
            host=prefix.host,
            label=prefix.label,
            pid=prefix.pid,
            attempt=self._attempts.of(order),
            stamp=prefix.stamp,
        )

    def _where_of(self, raw: Raw, *words: str) -> Where:
        """A line on its own; of several messages in it the one that holds these words."""
        text = without_border(raw.text(), self._shape)
        torn = len(words) > 0 and text.count("NCCL ") > 1
        for start, end, _ in pieces(text, self._shape) if torn else ():
            if all(word in text[start:end] for word in words):
                text = text[start:end]
                break
        prefix = peel(text, self._shape)
        if torn:
            self._hosts.glued(prefix)
        return self._where(raw, prefix, shown_text(text, [], prefix))

    def _keep(self, events: Iterable[Event]) -> None:
        for event in events:
            self._events.add(event)
            self._attempts.told(event)

    def _comm_calls(self) -> Iterable[CommCalls]:
        """The calls of each communicator, as one event."""
        for host in self._calls.hosts():
            self._hosts.seen(host)
        for lines in self._calls.all():
            last = lines.last_line()
            if lines.first is None or last is None:
                continue
            who, comm = lines.who.decode("utf-8", "replace"), lines.comm.decode()
            calls: list[Call] = []
            places: list[Where] = []
            nranks: int | None = None
            for kept in lines.newest():
                found = call_in(kept.raw().text(), who, comm)
                if found is not None:
                    calls.append(found[0])
                    places.append(self._where_of(kept.raw(), comm, who))
                    nranks = found[1] or nranks
            yield CommCalls(
                at=self._where_of(last.raw(), comm, who),
                comm=comm,
                nranks=nranks,
                collectives=lines.collectives,
                last=tuple(calls),
                last_at=tuple(places),
                sends=tuple(sorted(lines.sends.items())),
                receives=tuple(sorted(lines.receives.items())),
                op_count_moves=lines.moves,
                first_at=self._where_of(lines.first.raw(), comm, who),
                torn=self._calls.broken,
            )


class _Lines:
    """Lines that wait to be read, and those of a block: their bytes, and where each stands.

    ``wanted`` are the places in the block of the lines behind those that wait; ``states`` tell
    which state of a bar each of them is.
    """

    def __init__(
        self,
        held: list[Raw],
        data: list[bytes],
        forms: Forms,
        block: Block | None = None,
        wanted: Sequence[int] = (),
        states: Sequence[int] | None = None,
    ) -> None:
        self.data = data
        self.forms = forms
        self._held = held
        self._block = block
        self._wanted = wanted
        self._states = states
        self._bar: tuple[int, list[Raw]] = (-1, [])

    def raw(self, at: int) -> Raw:
        """One of them with its place."""
        if at < len(self._held) or self._block is None:
            return self._held[at]
        at -= len(self._held)
        index = self._wanted[at]
        if self._states is None:
            return self._block.raw(index)
        if self._bar[0] != index:
            # One line may hold thousands of states, and they are asked for in order.
            self._bar = index, self._block.states(index)
        return self._bar[1][self._states[at]]


def _lines_of(held: list[Raw], block: Block, wanted: list[int] | range, forms: Forms) -> _Lines:
    """The lines of a block that are wanted, behind those that wait."""
    lines = block.lines
    begin = [raw.data for raw in held]
    if b"\r" not in forms.text:
        more = lines if len(wanted) == len(lines) else list(map(lines.__getitem__, wanted))
        return _Lines(held, begin + more, forms.behind(begin, wanted), block, wanted)
    data = begin
    places: list[int] = []
    states: list[int] = []
    for at in wanted:
        parts = [part for part in lines[at].split(b"\r") if part and not part.isspace()]
        data += parts
        places += [at] * len(parts)
        states += range(len(parts))
    return _Lines(held, data, Forms(data), block, places, states)


_GATES: dict[tuple[tuple[bytes, ...], ...], Gate] = {}


def _gate_of(readers: Sequence[Reader]) -> Gate:
    """The gate of these readers. It learns the forms of lines, and logs of one job share them."""
    words = tuple(tuple(reader.words) for reader in readers)
    gate = _GATES.get(words)
    if gate is None:
        passing = frozenset(
            at for at, reader in enumerate(readers) if isinstance(reader, ProgramReader)
        )
        if len(_GATES) >= _MOST_GATES:
            _GATES.clear()
        gate = _GATES[words] = Gate(words, passing)
    return gate


def read_bytes(name: str, data: bytes, *, year: int | None = None) -> Traces:
    """The traces of a whole file."""
    reader = SourceReader(name, year=year)
    reader.feed(data)
    return reader.finish(size=len(data))
