"""Processes that caught their own end: signal handlers, aborts of C++ and of glibc.

Sources: UCX's and Open MPI's handlers, CPython's faulthandler, libstdc++, glibc, for example::

    [node-a:5283 :0:5704] Caught signal 7 (Bus error: nonexistent physical address)
    ==== backtrace (tid:   5704) ====
     1 0x000000000008170d ncclGroupEnd()  ???:0
    Fatal Python error: Segmentation fault
"""

import re
from collections.abc import Iterable, Iterator

from slurmtop.model.events.launch import Crash
from slurmtop.model.trace import Event
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.signals import signal_number
from slurmtop.parse.logs.torch_words import in_order, shown

_ABORT = 6
_SEGFAULT = 11

_CAUGHT = re.compile(
    r"(?:\[[^\]\s]{0,255} ?:\d{1,6}:(?P<tid>\d{1,10})\] ?)?Caught signal (?P<caught>\d{1,2}) \("
    r"|Fatal Python error: (?P<python>[A-Za-z][\w ]{2,60})"
    r"|terminate called (?P<terminate>after throwing an instance of|without an active exception)"
    r"|\*{3} (?P<begins>Process received) signal \*{3}"
    r"|\] Signal: (?P<name>[\w ]{2,40}) \((?P<mpi>\d{1,2})\)|^Signal: (?P<name2>[\w ]{2,40}) "
    r"\((?P<mpi2>\d{1,2})\)"
    r"|\*{3} (?P<glog>SIG[A-Z]{3,4}) .{0,100}received by PID"
    r"|!{3,8} Segfault encountered|(?P<segv>Segfault encountered)"
    r"|(?P<glibc>double free or corruption|free\(\): invalid|malloc\(\): |corrupted size vs\. "
    r"prev_size"
    r"|munmap_chunk\(\): invalid|corrupted double-linked list|stack smashing detected)"
)
_BACKTRACE = re.compile(r"={3,8} backtrace \(tid: {0,8}(?P<tid>\d{1,10})\)")
_FRAME = re.compile(
    r"\s{0,4}(?:\[[^\]]{1,255}\] )?(?:#?\d{1,3}:? {1,4}(?:0x[0-9a-f]{4,16} )?|frame #\d{1,3}: |\[ "
    r"?\d{1,3}\] )"
    r"(?P<where>\S.{0,300})"
)
_IN_NCCL = re.compile(r"\bnccl[A-Z]\w|libnccl|pncclC|\bnccl[a-z]{0,20}\(")
_END = re.compile(r"={20,}\s*$|\*{3} End of error message")

#: Messages from a crash to the last line of its backtrace, with other ranks' lines between.
_REACH = 60
_MOST_OPEN = 64
_TEXT_CHARS = 400


class _Open:
    def __init__(self, message: Message, found: re.Match[str]) -> None:
        self.message = message
        self.found = found
        self.in_nccl = False

    def event(self) -> Crash:
        return Crash(
            at=shown(self.message, self.found.start()),
            signal=_signal(self.found),
            text=self.message.text[self.found.start() : self.found.start() + _TEXT_CHARS],
            in_nccl=self.in_nccl,
        )


class CrashReader:
    """Reads crashes and their backtraces; see :class:`~slurmtop.parse.logs.line.Reader`."""

    words: tuple[bytes, ...] = (
        b"Caught signal",
        b"Fatal Python error",
        b"terminate called",
        b"Signal: ",
        b"Process received signal",
        b"received by PID",
        b"Segfault encountered",
        b"double free",
        b"free(): invalid",
        b"malloc(): ",
        b"corrupted ",
        b"munmap_chunk",
        b"stack smashing",
    )

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self._tid: str | None = None

    @property
    def open(self) -> bool:
        return bool(self._open)

    def see(self, message: Message) -> Iterable[Event]:
        order = message.at.order
        yield from self._give([one for one in self._open if order - one.message.at.order > _REACH])
        found = _CAUGHT.search(message.text)
        begun = self._begun(message) if found is not None and found["begins"] is None else None
        if found is not None and begun is not None:
            begun.found = found
            begun.message = message
        elif found is not None:
            if len(self._open) >= _MOST_OPEN:
                yield from self._give(self._open[:1])
            self._open.append(_Open(message, found))
        elif self._open:
            yield from self._backtrace(message)

    def _begun(self, message: Message) -> _Open | None:
        """Open MPI's head line of the same process, whose signal stands in this line."""
        for one in reversed(self._open):
            if one.found["begins"] is not None and _process(one.message) == _process(message):
                return one
        return None

    def finish(self) -> Iterable[Event]:
        return in_order(self._give(list(self._open)))

    def _give(self, these: list[_Open]) -> Iterator[Event]:
        if these:
            self._open = [one for one in self._open if one not in these]
            yield from (one.event() for one in these)

    def _backtrace(self, message: Message) -> Iterator[Event]:
        text = message.text
        if (head := _BACKTRACE.search(text)) is not None:
            self._tid = head["tid"]
            return
        crash = self._crash_of(message)
        if crash is None:
            return
        if _END.search(text) is not None:
            self._tid = None
            yield from self._give([crash])
        elif (frame := _FRAME.match(text)) is not None:
            crash.in_nccl = crash.in_nccl or _IN_NCCL.search(frame["where"]) is not None

    def _crash_of(self, message: Message) -> _Open | None:
        if self._tid is not None:
            for one in self._open:
                if one.found["tid"] == self._tid or f":{self._tid}" in one.message.at.text:
                    return one
        same = [one for one in self._open if one.message.stream == message.stream]
        return same[-1] if same else None


def _process(message: Message) -> tuple[str | None, int | None, str]:
    tag = re.match(r"\[[^\[\]\s]{1,255}:\d{1,10}\]", message.text)
    return message.at.host, message.at.pid, tag[0] if tag else message.stream


def _signal(found: re.Match[str]) -> int | None:
    if found["terminate"] is not None or found["begins"] is not None:
        return None
    if found["glibc"] is not None:
        return _ABORT
    told = found["caught"] or found["mpi"] or found["mpi2"] or found["glog"]
    if told is not None:
        return signal_number(told)
    if found["python"] is not None:
        return signal_number(found["python"].strip())
    return _SEGFAULT
