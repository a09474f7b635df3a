"""NCCL's mass lines: every collective call of every process, and thousands of channels.

Source: ``NCCL_DEBUG=INFO`` with ``NCCL_DEBUG_SUBSYS=COLL`` (the same text from 2.8 to 2.30), and
the trace of calls from 2.14 on, for example::

    node-a:815:864 [0] NCCL INFO AllReduce: opCount d sendbuff 0x7f recvbuff 0x7f count 1 …
    node-a:815:864 NCCL CALL ncclAllReduce(7f91,7f92,1,7,0,0,0x55e2,0x55f0)

A job writes gigabytes of them, so that they are read as bytes, one look each, and only the newest
of each communicator are kept. A line is printed when the call is made, not when it is done.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from operator import not_
from typing import Any, NamedTuple

from slurmtop.model.events.nccl import Call
from slurmtop.parse.logs.call_forms import Told, Wiring, may_be_broken, told_of, wiring_of
from slurmtop.parse.logs.forms import Forms
from slurmtop.parse.logs.raws import Block, Raw

#: Newest collectives kept of a communicator, and of one once there are many.
KEPT = 64
_KEPT_OF_MANY = 16
_MANY_COMMS = 512
_MOST_COMMS = 8_192
_MOST_PEERS = 4_096
_MOST_SEEN = 50_000
#: Lines by which it is told how many are calls, and how many of these are many.
_SAMPLE = 64
_MANY_CALLS = 8
_CALL_WORDS = (b"opCount", b"NCCL CALL nccl")
_OTHER = Told.NONE_OF_THESE
#: Blocks that are held as they are, because most of their calls will not be kept.
_RECENT_BLOCKS = 4
_COLON = ord(":")
_ENDS_TAG = b"])>:|"

_WHO = rb"([^\s:\[\]<>|]{0,253}:\d{1,10}):\d{1,10} \[-?\d{1,3}\] (?:NCCL )?INFO "
_COLL = (
    rb"([A-Z]\w{2,30}): opCount ([0-9a-f]{1,16}) sendbuff \S+ recvbuff \S+ count \d{1,20} "
    rb"datatype \d{1,3} op \d{1,20} root (-?\d{1,10}) comm (0x[0-9a-f]{1,16})"
    rb"(?: \[nranks=\d{1,10}\] stream (?:0x[0-9a-f]{1,16}|\(nil\))(?: task \d+ globalrank \d+)?)"
)
_LINE = re.compile(_WHO + _COLL + rb"\r?$")
_ENDED = re.compile(_COLL + rb"[ \r]*$")
_WRITER = re.compile(rb"([^\s:\[\]<>|]{0,253}:\d{1,10}):\d{1,10}$")
_INSIDE = re.compile(_WHO + _COLL)
#: What may stand in front of a host: nothing, or something that ends a tag.
_FREE = re.compile(rb"(?:^|[\s\])>:|])$")
_CALLED = (
    rb"([^\s:\[\]<>|]{0,253}:\d{1,10}):\d{1,10} NCCL CALL nccl([A-Z]\w{2,30})"
    rb"\((?:0x)?[0-9a-f]{1,16},(?:0x)?[0-9a-f]{1,16},\d{1,20},\d{1,3},\d{1,20},(-?\d{1,10}),"
    rb"((?:0x)?[0-9a-f]{1,16}),"
)
_CALL = re.compile(_CALLED)
_DETAIL = re.compile(
    r"([A-Z]\w{2,30}): opCount ([0-9a-f]{1,16}) sendbuff \S+ recvbuff \S+ count (\d{1,20}) "
    r"datatype (\d{1,3}) op (\d{1,20}) root (-?\d{1,10}) comm (0x[0-9a-f]{1,16})"
    r"(?: \[nranks=(\d{1,10})\])?"
)
_CALL_DETAIL = re.compile(
    r"NCCL CALL nccl([A-Z]\w{2,30})\(\w{1,18},\w{1,18},(\d{1,20}),(\d{1,3}),(\d{1,20}),"
    r"(-?\d{1,10}),"
)
_TIME = re.compile(rb"\d\d:\d\d:\d\d[.,\dZ+:]*|\d{4}-\d\d-\d\d")


class Kept(NamedTuple):
    """A line of which the call is read later."""

    data: bytes
    number: int | None
    offset: int
    place: int

    def raw(self) -> Raw:
        return Raw(self.data, self.number, self.offset, self.place)


class CommLines:
    """What is kept of one communicator of one process.

    ``who`` is ``host:pid`` as written. ``collectives`` counts all of them. ``sends`` and
    ``receives`` count calls by peer.
    """

    __slots__ = (
        "_recent", "_settled", "collectives", "comm", "first", "last", "moves", "op_count",
        "receives", "sends", "who",
    )  # fmt: skip

    def __init__(self, who: bytes, comm: bytes, kept: int) -> None:
        self.who = who
        self.comm = comm
        self.collectives = 0
        self.first: Kept | None = None
        self.last: tuple[Block, int] | Kept | None = None
        self.sends: dict[int, int] = {}
        self.receives: dict[int, int] = {}
        self.op_count: bytes | None = None
        self.moves = False
        self._settled: deque[Kept] = deque(maxlen=kept)
        self._recent: list[tuple[Block, list[int]]] = []

    def add(self, block: Block, places: list[int]) -> None:
        """Lines of one block; a call of two ranks alone as the complement of its place."""
        if self.first is None:
            self.first = _kept(block, _place(places[0]))
        self.last = block, _place(places[-1])
        if min(places) < 0:
            places = [at for at in places if at >= 0]
        if not places:
            return
        self.collectives += len(places)
        self._recent.append((block, places))
        newer = sum(len(part) for _, part in self._recent[1:])
        while newer >= (self._settled.maxlen or KEPT):
            del self._recent[0]
            self._settled.clear()
            newer -= len(self._recent[1][1]) if len(self._recent) > 1 else newer

    def settle(self, block: Block) -> None:
        """Keep what is still needed of ``block`` without the block itself."""
        if self._recent and self._recent[0][0] is block:
            _, places = self._recent.pop(0)
            newest = places[-(self._settled.maxlen or KEPT) :]
            self._settled.extend(_kept(block, at) for at in newest)
        if isinstance(self.last, tuple) and not isinstance(self.last, Kept):
            self.last = _kept(*self.last) if self.last[0] is block else self.last

    def newest(self) -> list[Kept]:
        """The last collectives, at most as many as are kept."""
        out = list(self._settled)
        for block, places in self._recent:
            out += [_kept(block, at) for at in places[-(self._settled.maxlen or KEPT) :]]
        return out[-(self._settled.maxlen or KEPT) :]

    def last_line(self) -> Kept | None:
        last = self.last
        return last if last is None or isinstance(last, Kept) else _kept(*last)


def _kept(block: Block, index: int) -> Kept:
    return Kept(block.lines[index], *block.at(index))


class CallLines:
    """Takes the mass lines out of the blocks of one source."""

    def __init__(self) -> None:
        self._comms: dict[tuple[bytes, bytes], CommLines] = {}
        self._traced: dict[tuple[bytes, bytes], CommLines] = {}
        self._seen: set[tuple[bytes, bytes]] = set()
        self._recent: deque[tuple[Block, list[CommLines]]] = deque()
        self._torn: list[tuple[bytes, int]] = []
        self.broken = 0
        """Calls of which only a part was found: cut lines, lines torn by another writer."""

    def take(self, block: Block, forms: Forms) -> list[int] | range:
        """The places of the lines that are none of these, or hold more than one.

        ``forms`` are those of the block's lines.
        """
        lines = block.lines
        rest: list[int] = []
        look: Iterable[tuple[int, bytes]] = enumerate(lines)
        # Numbers of calls are hexadecimal: each call may have a form of its own.
        if not _many_calls(lines):
            told = {form: kind for form in forms.kinds if (kind := told_of(form)) is not _OTHER}
            if not told:
                return range(len(lines))
            single, rest = self._by_form(forms, lines, told)
            look = zip(single, map(lines.__getitem__, single), strict=True)
        new: dict[CommLines, list[int]] = {}
        comms = self._comms
        match = _LINE.match
        for index, line in look:
            found = match(line)
            if found is None:
                if self._other(line, index, new):
                    rest.append(index)
                continue
            who, op, op_count, peer, comm = found.groups()
            lines_of = comms.get((who, comm))
            if lines_of is None or who[0] == _COLON:
                self._add(comms, b"", found.groups(), new, index)
                continue
            if op_count != lines_of.op_count:
                lines_of.moves = True
            places_of = new.get(lines_of)
            if places_of is None:
                places_of = new[lines_of] = []
            if len(op) == 4:
                index = _point_to_point(lines_of, op, peer, index)
            places_of.append(index)
        rest.sort()
        if self._torn:
            self._take_torn(new)
            for places_of in new.values():
                places_of.sort(key=_place)
        for lines_of, places_of in new.items():
            lines_of.add(block, places_of)
        self._recent.append((block, list(new)))
        if len(self._recent) > _RECENT_BLOCKS:
            old, touched = self._recent.popleft()
            for lines_of in touched:
                lines_of.settle(old)
        return rest

    def all(self) -> Iterator[CommLines]:
        """Each communicator of each process; calls that were logged in both forms once."""
        yield from self._comms.values()
        for key, lines in self._traced.items():
            if key not in self._comms:
                yield lines

    def hosts(self) -> set[str]:
        """The hosts of all processes."""
        return {who.rpartition(b":")[0].decode("utf-8", "replace") for who, _ in self._comms}

    def _by_form(
        self, forms: Forms, lines: Sequence[bytes], told: dict[bytes, Wiring | Told]
    ) -> tuple[list[int], list[int]]:
        """The lines that are to be looked at one by one, and those that are none of these.

        Of the wiring of a process the first line of each kind is among the latter.
        """
        single: list[int] = []
        first: list[tuple[int, tuple[bytes, bytes]]] = []
        for form, places in forms.places(told).items():
            kind = told[form]
            if isinstance(kind, Wiring):
                first += kind.firsts(lines, places)
            else:
                single += places
        rest = list(compress(range(len(lines)), map(not_, map(told.__contains__, forms.of))))
        rest += [at for at, key in sorted(first) if self._is_first(key)]
        return sorted(single), rest

    def _is_first(self, key: tuple[bytes, bytes]) -> bool:
        if key in self._seen:
            return False
        if len(self._seen) < _MOST_SEEN:
            self._seen.add(key)
        return True

    def _other(self, line: bytes, index: int, new: dict[CommLines, list[int]]) -> bool:
        """A line with prefixes, torn, or of another kind; true where it is still to be read."""
        if b"opCount" in line:
            if line.count(b"opCount") == 1 and self._prefixed(line, index, new):
                return False
            self._torn.append((line, index))
            return True
        wiring = wiring_of(line)
        if wiring is not None:
            return self._is_first((line[wiring.start : wiring.end], wiring.kind))
        if may_be_broken(line):
            self.broken += 1
            return True
        if b"NCCL CALL nccl" in line:
            call = _CALL.search(line)
            if call is None:
                return b"ncclGroup" not in line
            who, op, peer, comm = call.groups()
            self._add(self._traced, line[: call.start()], (who, op, None, peer, comm), new, index)
            return False
        return True

    def _prefixed(self, line: bytes, index: int, new: dict[CommLines, list[int]]) -> bool:
        """One whole call behind the prefixes of launchers and collectors."""
        begin = line.rfind(b" ", 0, line.find(b": opCount ")) + 1
        whole = _ENDED.match(line, begin)
        if whole is None:
            return False
        words = line[:begin].split()
        if len(words) < 4 or words.pop() != b"INFO" or line.count(b"INFO ") != 1:
            return False
        word = words[_token(words)]
        writer = _WRITER.search(word)
        if writer is None or (writer.start() and word[writer.start() - 1] not in _ENDS_TAG):
            return False
        before = line[: line.find(word) + writer.start()]
        self._add(self._comms, before, (writer[1], *whole.groups()), new, index)
        return True

    def _take_torn(self, new: dict[CommLines, list[int]]) -> None:
        """The whole calls of lines that hold more than one; what is left of others is counted."""
        known = {who for who, _ in self._comms}
        for line, index in self._torn:
            whole = 0
            end = 0
            for found in _INSIDE.finditer(line):
                who, op, op_count, peer, comm = found.groups()
                if found.start() > 0 and not _FREE.search(line, 0, found.start()):
                    # Glued to other words: where the host begins only its other lines tell.
                    token = line[end : found.start(2)]
                    fits = [one for one in known if one + b":" in token]
                    who = max(fits, key=len, default=b"")
                end = found.end()
                if who:
                    whole += 1
                    told = (who, op, op_count, peer, comm)
                    self._add(self._comms, line[: found.start()], told, new, index)
            self.broken += max(1, line.count(b"opCount")) - whole
        self._torn.clear()

    def _add(
        self,
        comms: dict[tuple[bytes, bytes], CommLines],
        before: bytes,
        told: Sequence[bytes | Any],
        new: dict[CommLines, list[int]],
        index: int,
    ) -> None:
        """A call behind prefixes, or the first of its communicator."""
        who, op, op_count, peer, comm = told
        name = who
        if who[0] == _COLON:
            # Without a host only the collector's tags tell two processes apart.
            name = _TIME.sub(b"", before) + who
        lines = comms.get((name, comm))
        if lines is None:
            if len(comms) >= _MOST_COMMS:
                return
            kept = KEPT if len(comms) < _MANY_COMMS else _KEPT_OF_MANY
            lines = comms[(name, comm)] = CommLines(who, comm, kept)
            lines.op_count = op_count
        if op_count != lines.op_count:
            lines.moves = True
        if len(op) == 4:
            index = _point_to_point(lines, op, peer, index)
        new.setdefault(lines, []).append(index)


def _many_calls(lines: Sequence[bytes]) -> bool:
    """Are so many of these lines calls that each is best looked at on its own?"""
    sample = lines[:: max(1, len(lines) // _SAMPLE)]
    calls = sum(1 for line in sample if any(map(line.__contains__, _CALL_WORDS)))
    return calls * _MANY_CALLS >= len(sample)


def _token(words: Sequence[bytes]) -> int:
    """Which word in front of ``INFO`` names the process: two before it, or three."""
    return -3 if words[-1] == b"NCCL" else -2


def _place(at: int) -> int:
    return max(at, ~at)


def _point_to_point(lines: CommLines, op: bytes, peer: bytes, index: int) -> int:
    """Counts a Send or Recv; the place under which its line is noted."""
    if op != b"Send" and op != b"Recv":
        return index
    peers = lines.sends if op == b"Send" else lines.receives
    number = int(peer)
    if number in peers or len(peers) < _MOST_PEERS:
        peers[number] = peers.get(number, 0) + 1
    return ~index


def call_in(text: str, who: str, comm: str) -> tuple[Call, int | None] | None:
    """The call that a kept line tells of this process and communicator, and its nranks."""
    for found in _DETAIL.finditer(text):
        if found[7] == comm and who in text[max(0, found.start() - 400) : found.start()]:
            op, op_count, count, datatype, redop, root, _, nranks = found.groups()
            call = Call(op, int(count), int(datatype), int(redop), int(root), int(op_count, 16))
            return call, int(nranks) if nranks else None
    traced = _CALL_DETAIL.search(text)
    if traced is None:
        return None
    op, count, datatype, redop, root = traced.groups()
    return Call(op, int(count), int(datatype), int(redop), int(root), 0), None
