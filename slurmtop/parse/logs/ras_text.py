"""The text of ``ncclras``, as it stands in a log or a file of its own.

Source: NCCL 2.24 to 2.30, ``src/ras/client_support.cc``, for example::

        0         1         4         8        32        32   RUNNING  MISMATCH
    #0-0 (fa93daea854b060b) MISMATCH

A block is one finding on one communicator. Of a mismatch each operation is told on its own, with
the groups of ranks by how much they launched; RAS lists the ranks of small groups, whether these
are behind or ahead.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from slurmtop.model.events.reports import RasComm, RasProcess, RasRank, RasSummary
from slurmtop.model.trace import Event
from slurmtop.parse.logs.block import shown
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.plain import texts

_VERSION = re.compile(r"NCCL version (?P<version>\d{1,3}\.[\w.+-]{1,40}) compiled with CUDA")
_NUMBERS = re.compile(r"\s*\d{1,9}(?:\s{1,16}\d{1,9}){2,5}\s*$")
_GROUP = re.compile(
    r"\s*\d{1,6}(?:\s{1,16}\d{1,9}){2}\s{1,16}\d{1,9}(?:-\d{1,9})?(?:\s{1,16}\d{1,9}){2}"
    r"\s{1,16}(?P<status>NOCOMM|INIT|RUNNING|FINALIZE|ABORT)\s{1,16}(?P<errors>[A-Z,]{2,40})\s*$"
)
_HEAD = re.compile(
    r"\s*#\d{1,6}-\d{1,6} \((?P<comm>[0-9a-f]{1,16})\) (?P<error>MISMATCH|INCOMPLETE|ERROR)\s*$"
)
_JOB_HEAD = re.compile(r"\s*(?P<error>INCOMPLETE|DEAD|TIMEOUT)\s*$")
_DIFFERENT = re.compile(
    r"\s*Communicator ranks have different (?:(?P<op>\w{3,20}) operation counts|(?P<status>status))"
)
_GROUP_COUNT = re.compile(
    r"\s*(?P<ranks>\d{1,9}) ranks? (?:have|has) (?:launched up to operation (?P<launched>\d{1,19})"
    r"|not launched any operations|status (?P<status>[A-Z]{3,20}))\s*$"
)
_REPORTED = re.compile(r"\s*(?P<ranks>\d{1,9}) ranks? reported (?P<said>[A-Z][\w ]{2,40})\s*$")
_RANK = re.compile(
    r"\s*Rank (?P<rank>-?\d{1,20})(?: has launched up to operation (?P<launched>\d{1,19})"
    r"|(?P<none> has not launched any operations)| has status (?P<status>[A-Z]{3,20})"
    r"| reported (?P<said>[A-Z][\w ]{2,40}?))? --"
    r"(?: GPU (?P<gpu>\d{1,3})(?: \(NVML \d{1,3}\))? managed by process (?P<pid>\d{1,10}) on node "
    r"(?P<node>\S{1,255})| \[process information not found\]|\s*$)"
)
_PROCESS = re.compile(
    r"\s*Process (?P<pid>\d{1,10}) on node (?P<node>\S{1,255}) managing GPUs? "
    r"(?P<gpus>[\d,]{1,200})"
)
_PLAIN = re.compile(
    r"\s*(?:Job summary|=+|CUDA runtime version .*|Nodes  Processes.*|\(total\).*"
    r"|Communicators\.\.\..*|Group     Comms .*|# +in group .*|Errors|Warnings"
    r"|Missing communicator data from .*"
    r"|\d+ job process(?:es are| is) considered dead.*|Encountered \d+ communication timeouts?.*"
    r"|(?:Initialization|Asynchronous) errors? on \d+ ranks?|No communicator data collected!"
    r"|per node.*|The outlier nodes?:|Node \S+ running process.*|\[could not find information.*"
    r"|Processes  +GPUs|\d+ +\d+)?\s*$"
)
#: A report that other lines stand in is not given up at once.
_STRANGERS = 8
_MOST_LINES = 4096
_MOST_RANKS = 4096


@dataclass
class _Block:
    """The lines of one finding so far."""

    comm: str | None
    error: str
    lines: list[Message]
    op: str | None = None
    of_status: bool = False
    said: str = ""
    counts: list[tuple[int, int]] = field(default_factory=list)
    ranks: list[RasRank] = field(default_factory=list)
    processes: list[RasProcess] = field(default_factory=list)
    launched: int | None = None
    status: str | None = None

    @property
    def begun(self) -> bool:
        return self.op is not None or self.of_status


class RasTextReader:
    """:class:`RasComm` for each finding, and a :class:`RasSummary` when the report is over."""

    words: tuple[bytes, ...] = (
        b"Job summary",
        b"compiled with CUDA",
        b"Communicators...",
        b"Comms     Nodes",
        b" RUNNING ",
        b" INIT ",
        b" ABORT ",
        b" FINALIZE ",
        b" NOCOMM ",
        b") MISMATCH",
        b") INCOMPLETE",
        b") ERROR",
        b"different ",
        b"ranks have launched",
        b"considered dead",
    )
    _texts = texts(words)

    def __init__(self) -> None:
        self._fresh()

    def _fresh(self) -> None:
        self._block: _Block | None = None
        self._table: Message | None = None
        self._version: str | None = None
        self._ranks: int | None = None
        self._all_ok: bool | None = None
        self._in_summary = False
        self._strangers = 0
        self._lines = 0
        self._open = False

    @property
    def open(self) -> bool:
        return self._open

    def see(self, message: Message) -> Iterable[Event]:
        text = message.text
        if not self._open and not any(word in text for word in self._texts):
            return
        if not self._open and not self._begins(text):
            return
        if _VERSION.search(text) and self._lines:
            yield from self._close()
        if not self._known(text):
            self._strangers += 1
            if self._strangers > _STRANGERS or self._lines > _MOST_LINES:
                yield from self._close()
            return
        self._open = True
        self._strangers = 0
        self._lines += 1
        yield from self._take(message)

    def finish(self) -> Iterable[Event]:
        yield from self._close()

    def _begins(self, text: str) -> bool:
        return any(
            pattern.match(text) for pattern in (_GROUP, _HEAD, _DIFFERENT, _GROUP_COUNT)
        ) or (
            text.strip() == "Job summary"
            or text.startswith(("Communicators...", "Group     Comms"))
            or _VERSION.search(text) is not None
            or "considered dead (unreachable via the RAS" in text
        )

    def _known(self, text: str) -> bool:
        return (
            _VERSION.search(text) is not None
            or _PLAIN.match(text) is not None
            or any(
                pattern.match(text)
                for pattern in (_GROUP, _HEAD, _JOB_HEAD, _DIFFERENT, _GROUP_COUNT, _REPORTED)
            )
            or any(pattern.match(text) for pattern in (_RANK, _PROCESS, _NUMBERS))
        )

    def _take(self, message: Message) -> Iterator[Event]:
        text = message.text
        if found := _VERSION.search(text):
            self._version = found["version"]
        elif text.strip() == "Job summary":
            self._in_summary = True
        elif found := _GROUP.match(text):
            self._in_summary = False
            fine = found["errors"] == "OK"
            if self._table is None or (self._all_ok and not fine):
                self._table = message
            self._all_ok = fine and self._all_ok is not False
        elif found := _HEAD.match(text):
            yield from self._end_block()
            self._block = _Block(found["comm"], found["error"], [message])
        elif found := _JOB_HEAD.match(text):
            yield from self._end_block()
            self._block = _Block(None, found["error"], [message])
        elif found := _DIFFERENT.match(text):
            yield from self._next_part(message, found)
        elif self._in_summary and (found := _NUMBERS.match(text)):
            self._ranks = int(text.split()[-1])
        elif self._block is not None and text.strip():
            self._fill(self._block, message)
        elif "considered dead" in text:
            self._block = _Block(None, "DEAD", [message])
        elif _GROUP_COUNT.match(text):
            # The head was left out by whoever passed the report on.
            self._block = _Block(None, "MISMATCH", [])
            self._fill(self._block, message)

    def _next_part(self, message: Message, found: re.Match[str]) -> Iterator[Event]:
        old = self._block
        block = old
        if old is None or old.begun:
            yield from self._end_block()
            block = _Block(old.comm if old else None, "MISMATCH", old.lines[:1] if old else [])
        if block is None:
            return
        block.op = found["op"]
        block.of_status = found["status"] is not None
        block.lines.append(message)
        self._block = block

    def _fill(self, block: _Block, message: Message) -> None:
        text = message.text
        if len(block.lines) < _MOST_LINES:
            block.lines.append(message)
        if found := _GROUP_COUNT.match(text):
            block.status = found["status"]
            block.launched = None if block.status else int(found["launched"] or 0)
            if block.launched is not None:
                block.counts.append((int(found["ranks"]), block.launched))
        elif found := _REPORTED.match(text):
            block.said = block.said or found["said"].strip()
            block.status = found["said"].strip()
        elif found := _RANK.match(text):
            self._rank(block, found)
        elif (found := _PROCESS.match(text)) and len(block.processes) < _MOST_RANKS:
            block.processes.append(RasProcess(int(found["pid"]), found["node"], found["gpus"]))

    def _rank(self, block: _Block, found: re.Match[str]) -> None:
        launched, status = block.launched, block.status
        if found["launched"] or found["none"]:
            launched = int(found["launched"] or 0)
            block.counts.append((1, launched))
        if found["status"]:
            status = found["status"]
        if found["said"]:
            status = found["said"].strip()
            block.said = block.said or status
        if len(block.ranks) < _MOST_RANKS:
            block.ranks.append(
                RasRank(
                    rank=int(found["rank"]),
                    gpu=found["gpu"],
                    pid=int(found["pid"]) if found["pid"] else None,
                    node=found["node"],
                    launched=launched,
                    status=status,
                )
            )

    def _end_block(self) -> Iterator[Event]:
        block, self._block = self._block, None
        if block is None or not block.lines or block.error == "TIMEOUT":
            return
        absent = block.error == "INCOMPLETE"
        self._all_ok = False
        yield RasComm(
            at=shown(block.lines),
            comm_id=block.comm,
            status=None,
            errors=(block.error,),
            op=block.op,
            counts=tuple(block.counts),
            ranks=() if absent else tuple(block.ranks),
            missing=tuple(block.ranks) if absent else (),
            dead=block.error == "DEAD",
            processes=tuple(block.processes),
            said=block.said,
        )

    def _close(self) -> Iterator[Event]:
        yield from self._end_block()
        if self._table is not None:
            yield RasSummary(
                at=self._table.at, version=self._version, ranks=self._ranks, all_ok=self._all_ok
            )
        self._fresh()
