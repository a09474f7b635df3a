"""One log to traces: raw lines made whole, their prefixes peeled, shown to every reader.

Source: any log of a job, in blocks of any size, for example::

    reader = SourceReader("slurm-4711.out")
    reader.feed(head), reader.skip(gap), reader.feed(tail)
    traces = reader.finish(size=total)

Most lines are never decoded: a look for the readers' words in the bytes passes them over. What is
kept is bounded, however long the log is. How the bytes were cut into blocks makes no difference.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from slurmtop.model.events.nccl import Call, CommCalls
from slurmtop.model.trace import Event, Source, Traces, Where
from slurmtop.parse.logs.calls import CallLines, call_in
from slurmtop.parse.logs.keeping import Attempts, Ends, Events, Orders
from slurmtop.parse.logs.line import Message, Reader
from slurmtop.parse.logs.mend import MOST_PARTS, goes_on, joined, pieces
from slurmtop.parse.logs.names import host_in_name, rank_in_name
from slurmtop.parse.logs.peel import Prefix, peel
from slurmtop.parse.logs.raws import Block, Raw, RawLines
from slurmtop.parse.logs.readers import READERS
from slurmtop.parse.logs.shape import NO_SHAPE, Shape, shape_of, without_border

SHOWN_CHARS = 400

#: Read at a time, whatever the size of what is fed.
_CHUNK = 1 << 19
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
        words = sorted({word for reader in self._readers for word in reader.words})
        self._gate = re.compile(b"|".join(map(re.escape, words))) if words else None
        self._raws = RawLines()
        self._buffer = bytearray()
        self._shape: Shape = replace(NO_SHAPE, year=year)
        self._waiting: list[Raw] = []
        self._ends = Ends()
        self._events = Events()
        self._attempts = Attempts()
        self._orders = Orders()
        self._calls = CallLines()
        self._read = 0
        self._unread: list[tuple[int, int]] = []
        self._cut = False

    def feed(self, data: bytes) -> None:
        """The next bytes of the file."""
        self._read += len(data)
        self._buffer += data
        while len(self._buffer) >= _CHUNK:
            chunk = bytes(self._buffer[:_CHUNK])
            del self._buffer[:_CHUNK]
            self._take(self._raws.feed(chunk), final=False)

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
        first, last, last_stamped, spacing_s = self._ends.told(self._where_of)
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
            "spacing_s": spacing_s,
            "dropped_events": self._events.dropped,
        }
        source = Source(name=self._name, **{**fields, **source_fields})
        return Traces((source,), self._events.all())

    def _flush(self) -> None:
        """All that was fed so far is read to its end, an unfinished line too."""
        blocks = self._raws.feed(bytes(self._buffer))
        self._buffer.clear()
        self._cut = self._raws.unfinished
        self._take(blocks + self._raws.finish(), final=True)

    def _take(self, blocks: list[Block], *, final: bool) -> None:
        for block in blocks:
            self._learn(block)
            self._ends.see(block)
            self._waiting.extend(block.raws(self._calls.take(block)))
        keep = 0 if final else MOST_PARTS
        ready = self._waiting[: len(self._waiting) - keep]
        if ready:
            self._read_lines(ready, self._waiting)
            self._waiting = self._waiting[len(ready) :]

    def _learn(self, block: Block) -> None:
        if block.place == 0 and len(block.lines) <= _MOST_PASTED:
            sample = range(len(block.lines))
        else:
            sample = range(0, len(block.lines), max(1, len(block.lines) // 40))
        lines = [raw.text() for raw in block.raws(sample)]
        shape = shape_of(lines, self._shape)
        self._shape = shape if block.place == 0 else replace(shape, width=None, padded=False)

    def _read_lines(self, ready: list[Raw], behind: list[Raw]) -> None:
        """Show what is telling in ``ready``; a record may go on in ``behind``, its longer form."""
        gate = self._gate
        skip_to = 0
        every = self._shape.width is not None
        for index, raw in enumerate(ready):
            if index < skip_to:
                continue
            telling = gate is not None and gate.search(raw.data) is not None
            if not telling and not every and not any(reader.open for reader in self._readers):
                continue
            parts = self._parts(raw, behind[index + 1 : index + MOST_PARTS])
            skip_to = index + len(parts)
            self._orders.begin(raw.place)
            self._show(raw, parts)
            self._orders.more(1 - len(parts))
        # Parts of a record that were held for the next round are done.
        if skip_to > len(ready):
            del self._waiting[len(ready) : skip_to]

    def _parts(self, raw: Raw, behind: list[Raw]) -> list[str]:
        """The texts of this raw line and of those that it goes on in."""
        shape = self._shape
        parts = [without_border(raw.text(), shape)]
        for place, later in enumerate(behind, start=1):
            if later.place > raw.place + place:
                break
            text = without_border(later.text(), shape)
            if not goes_on("\n".join(parts), text, shape):
                break
            parts.append(text)
        return parts

    def _show(self, raw: Raw, parts: list[str]) -> None:
        for message in self._messages(raw, parts):
            message = self._attempts.seen(message)
            for reader in self._readers:
                self._keep(reader.see(message))

    def _messages(self, raw: Raw, parts: list[str]) -> Iterable[Message]:
        """The messages of one line; the last of them goes on in the further parts."""
        text = parts[0]
        bounds = list(pieces(text, self._shape))
        outer: Prefix | None = None
        for start, end in bounds:
            if outer is not None:
                self._orders.more(1)
            more = parts[1:] if end == len(text) else []
            message, prefix = self._message(raw, text[start:end], more, outer)
            outer = outer or prefix
            if message.text.strip():
                yield message

    def _message(
        self, raw: Raw, text: str, more: list[str], outer: Prefix | None
    ) -> tuple[Message, Prefix]:
        whole = joined([text, *more], self._shape) if more else text
        prefix = peel(whole, self._shape)
        if outer is not None:
            _inherit(prefix, outer, whole)
        rest = whole[prefix.end :]
        message = Message(
            text=rest.rstrip(),
            stream=" ".join(prefix.tags),
            at=self._where(raw, prefix, _shown(text, more, prefix)),
            indented=rest[:1].isspace(),
            head=prefix.head,
        )
        self._ends.stamped(message.at)
        return message, prefix

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

    def _where_of(self, raw: Raw, words: str = "") -> Where:
        """A line on its own; of several messages in it the one that holds ``words``."""
        text = without_border(raw.text(), self._shape)
        torn = words and text.count("NCCL ") > 1
        for start, end in pieces(text, self._shape) if torn else ():
            if words in text[start:end]:
                text = text[start:end]
                break
        prefix = peel(text, self._shape)
        return self._where(raw, prefix, _shown(text, [], prefix))

    def _keep(self, events: Iterable[Event]) -> None:
        for event in events:
            self._events.add(event)
            self._attempts.told(event)

    def _comm_calls(self) -> Iterable[CommCalls]:
        """The calls of each communicator, as one event."""
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
                    places.append(self._where_of(kept.raw(), comm))
                    nranks = found[1] or nranks
            yield CommCalls(
                at=self._where_of(last.raw(), comm),
                comm=comm,
                nranks=nranks,
                collectives=lines.collectives,
                last=tuple(calls),
                last_at=tuple(places),
                sends=tuple(sorted(lines.sends.items())),
                receives=tuple(sorted(lines.receives.items())),
                op_count_moves=lines.moves,
                first_at=self._where_of(lines.first.raw(), comm),
            )


def _inherit(prefix: Prefix, outer: Prefix, text: str) -> None:
    """A launcher's tags hold for all that is glued into one of its lines; a rank's own do not."""
    if text.startswith(("srun", "slurmstepd")):
        return
    prefix.task = outer.task if prefix.task is None else prefix.task
    prefix.label = prefix.label or outer.label
    prefix.stamped(outer.stamp)
    if text.startswith("Traceback") and not prefix.tags:
        prefix.rank, prefix.rank_from = outer.rank, outer.rank_from
        prefix.local_rank, prefix.pid = outer.local_rank, outer.pid
        prefix.host = outer.host
        prefix.tags.extend(outer.tags)


def _shown(text: str, more: Sequence[str], prefix: Prefix) -> str:
    """What a person is shown: from the first prefix that leaves room for the message."""
    whole = "\n".join([text, *more])
    begin = 0
    for start in prefix.starts:
        if len(whole) - begin <= SHOWN_CHARS:
            break
        begin = min(start, len(text))
    return whole[begin:].strip()[:SHOWN_CHARS].rstrip()


def read_bytes(name: str, data: bytes, *, year: int | None = None) -> Traces:
    """The traces of a whole file."""
    reader = SourceReader(name, year=year)
    reader.feed(data)
    return reader.finish(size=len(data))
